"""The events of one turn: who can take what, and what was taken."""

import pytest

from tidegate.actors.sink.outbox import Outbox
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import EVENT_OVERHEAD_BYTES, Reasoning, Refusal, Text, Tool
from tidegate.protocol.events import (
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    UsageReported,
)


WINDOW_BYTES = 400  # a review is due after a quarter of it
PIECE = "x" * (100 - EVENT_OVERHEAD_BYTES)  # of which each takes a quarter


@pytest.fixture
def outbox():
    return Outbox("turn-7")


def append(outbox, *deltas, attempt=1, at_s=1.0):
    outbox.append(attempt, at_s, deltas, WINDOW_BYTES)


def start(outbox, attempt):
    outbox.publish(lambda turn_id, offset: AttemptStarted(turn_id, attempt, offset, 0.0))


def notice(outbox):
    outbox.publish(lambda t, offset: Notice(t, 1, offset, 0.0, kind="reconnecting", text="..."))


def count(outbox, attempt=1):
    outbox.publish(lambda t, offset: UsageReported(t, attempt, offset, 0.0, usage=Usage()))


def take(outbox, reader, times):
    return [outbox.take(reader) for _ in range(times)]


def texts(outbox):
    return [event.text for event in outbox.events]


@pytest.mark.parametrize(
    ("delta", "event"),
    [
        (Text("a", 1), TextDelta("turn-7", 1, 0, 2.0, "a", 1)),
        (Reasoning("r", 1), ReasoningDelta("turn-7", 1, 0, 2.0, "r", 1)),
        (Refusal("no", 1), RefusalDelta("turn-7", 1, 0, 2.0, "no", 1)),
        (Tool(3, "i", "f", "{", 1), ToolCallDelta("turn-7", 1, 0, 2.0, 3, "i", "f", "{", 1)),
        (
            Tool(0, arguments="1", whole=True),
            ToolCallDelta("turn-7", 1, 0, 2.0, 0, arguments="1", whole=True),
        ),
    ],
)
def test_delta_becomes_an_event_of_its_own(outbox, delta, event):
    append(outbox, delta, at_s=2.0)

    assert outbox.events == [event]


def test_offsets_have_no_gaps(outbox):
    start(outbox, 1)
    append(outbox, Text("a"), Text("b"))
    notice(outbox)
    append(outbox, Text("c"))

    assert [event.offset for event in outbox.events] == [0, 1, 2, 3, 4]


def test_reader_takes_every_event_once_and_in_order(outbox):
    reader = outbox.attach()
    append(outbox, Text("a"), Text("b"))

    assert [event and event.text for event in take(outbox, reader, 3)] == ["a", "b", None]


def test_each_reader_begins_at_the_first_event(outbox):
    first = outbox.attach()
    append(outbox, Text("a"))
    take(outbox, first, 1)

    second = outbox.attach()

    assert second != first
    assert outbox.take(second).text == "a"


def test_number_of_a_reader_that_left_in_the_middle_is_not_given_again(outbox):
    first, second = outbox.attach(), outbox.attach()
    outbox.detach(first)

    assert outbox.attach() not in (first, second)


def test_detaching_twice_is_no_fault(outbox):
    reader = outbox.attach()
    outbox.detach(reader)
    outbox.detach(reader)

    assert outbox.cursors == {}


def test_freeze_withdraws_what_nobody_took(outbox):
    reader = outbox.attach()
    append(outbox, Text("a"), Text("b"), Text("c"))
    take(outbox, reader, 1)

    outbox.freeze()

    assert texts(outbox) == ["a"]
    assert outbox.take(reader) is None


def test_what_one_reader_took_stays_for_all(outbox):
    fast, slow = outbox.attach(), outbox.attach()
    append(outbox, Text("a"), Text("b"), Text("c"))
    take(outbox, fast, 2)
    take(outbox, slow, 1)

    outbox.freeze()

    assert outbox.take(slow).text == "b"
    assert outbox.take(slow) is None


def test_what_a_reader_took_stays_when_it_has_left(outbox):
    reader = outbox.attach()
    append(outbox, Text("a"), Text("b"))
    take(outbox, reader, 1)
    outbox.detach(reader)

    outbox.freeze()

    assert texts(outbox) == ["a"]


def test_announcements_are_never_frozen_and_move_up(outbox):
    start(outbox, 1)
    append(outbox, Text("a"))
    notice(outbox)

    outbox.freeze()

    assert [type(event) for event in outbox.events] == [AttemptStarted, Notice]
    assert [event.offset for event in outbox.events] == [0, 1]


@pytest.mark.parametrize("delta", [Text("a"), Reasoning("r"), Refusal("no"), Tool(0)])
def test_every_delta_can_be_withdrawn(outbox, delta):
    append(outbox, delta)
    outbox.freeze()

    assert outbox.events == []


def test_usage_can_be_withdrawn(outbox):
    count(outbox)
    outbox.freeze()

    assert outbox.events == []


def test_released_events_come_last_with_fresh_offsets_and_times(outbox):
    append(outbox, Text("a"), Text("b"))
    outbox.freeze()
    start(outbox, 2)

    outbox.release(9.0)

    assert outbox.events[1:] == [
        TextDelta("turn-7", 1, 1, 9.0, "a"),
        TextDelta("turn-7", 1, 2, 9.0, "b"),
    ]
    assert outbox.frozen == []


def test_dropped_events_are_not_released(outbox):
    append(outbox, Text("a"))
    outbox.freeze()
    outbox.drop_frozen()

    outbox.release(9.0)

    assert outbox.events == []


def test_what_was_frozen_before_stays_frozen_in_front(outbox):
    append(outbox, Text("a"))
    outbox.freeze()
    count(outbox, attempt=2)
    outbox.freeze()

    outbox.release(9.0)

    assert [event.attempt for event in outbox.events] == [1, 2]


def test_supersession_is_announced_if_anything_was_taken(outbox):
    reader = outbox.attach()
    append(outbox, Reasoning("hm"), Text("ab"), Text("c"), Text("other", 1), Text("unseen"))
    take(outbox, reader, 4)
    outbox.freeze()

    outbox.supersede(1, 5.0)

    assert outbox.events[-1] == AttemptSuperseded("turn-7", 1, 4, 5.0, retracts=3)


def test_supersession_retracts_nothing_where_no_text_was_taken(outbox):
    reader = outbox.attach()
    append(outbox, Tool(0, "i", "f"))
    take(outbox, reader, 1)

    outbox.supersede(1, 5.0)

    assert outbox.events[-1].retracts == 0


def test_supersession_of_what_nobody_took_is_not_announced(outbox):
    reader = outbox.attach()
    start(outbox, 1)
    append(outbox, Text("a"), attempt=2)
    take(outbox, reader, 2)

    outbox.supersede(1, 5.0)

    assert [type(event) for event in outbox.events] == [AttemptStarted, TextDelta]


def test_taken_usage_counts_as_something_taken(outbox):
    reader = outbox.attach()
    count(outbox)
    take(outbox, reader, 1)

    assert outbox.taken_of(1)
    assert not outbox.taken_of(2)


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (Text("a"), True),
        (Text(" a"), True),
        (Text(" \n\t"), False),
        (Text(""), False),
        (Reasoning("r"), False),
    ],
)
def test_visible_is_text_that_is_not_only_white_space(outbox, delta, expected):
    reader = outbox.attach()
    append(outbox, delta)
    take(outbox, reader, 1)

    assert outbox.visible(1) is expected
    assert not outbox.visible(2)


def test_pending_text_is_visible_only_if_it_is_asked_for(outbox):
    append(outbox, Text("a"))

    assert not outbox.visible(1)
    assert outbox.visible(1, pending=True)


def test_review_is_due_once_a_quarter_of_the_window_is_read(outbox):
    append(outbox, Text(PIECE[1:]))
    assert outbox.review_at == -1

    append(outbox, Text("yz"))
    assert outbox.review_at == 2

    append(outbox, Text(PIECE))
    assert outbox.review_at == 2


def test_review_is_due_at_exactly_a_quarter(outbox):
    append(outbox, Text(PIECE))

    assert outbox.review_at == 1


def test_review_counts_what_the_slowest_reader_has_taken(outbox):
    fast, slow = outbox.attach(), outbox.attach()
    append(outbox, Text(PIECE))
    append(outbox, Text(PIECE))
    append(outbox, Text(PIECE))
    take(outbox, fast, 3)
    take(outbox, slow, 1)

    assert outbox.review(WINDOW_BYTES) == 100


def test_next_review_is_a_quarter_of_the_window_further(outbox):
    reader = outbox.attach()
    append(outbox, Text(PIECE))
    append(outbox, Text(PIECE[:-1]))
    append(outbox, Text(PIECE))
    take(outbox, reader, 1)

    outbox.review(WINDOW_BYTES)

    assert outbox.review_at == 3


def test_exact_quarter_makes_a_review_due(outbox):
    reader = outbox.attach()
    append(outbox, Text(PIECE))
    append(outbox, Text(PIECE))
    take(outbox, reader, 1)

    outbox.review(WINDOW_BYTES)

    assert outbox.review_at == 2


def test_no_review_is_due_where_nothing_is_left_to_read(outbox):
    reader = outbox.attach()
    append(outbox, Text(PIECE))
    take(outbox, reader, 1)
    outbox.review(WINDOW_BYTES)
    assert outbox.review_at == -1

    append(outbox, Text(PIECE[:-1]))
    assert outbox.review_at == -1

    append(outbox, Text("y"))
    assert outbox.review_at == 3


def test_message_is_read_when_its_last_delta_is(outbox):
    reader = outbox.attach()
    append(outbox, Text(PIECE), Text(PIECE))
    take(outbox, reader, 1)
    assert outbox.review(WINDOW_BYTES) == 0

    take(outbox, reader, 1)
    assert outbox.review(WINDOW_BYTES) == 200


def test_without_a_reader_nothing_is_read(outbox):
    append(outbox, Text(PIECE))

    assert outbox.review(WINDOW_BYTES) == 0


def test_new_attempt_is_measured_from_its_beginning(outbox):
    reader = outbox.attach()
    append(outbox, Text(PIECE))
    take(outbox, reader, 1)
    outbox.freeze()
    outbox.begin_window()

    assert outbox.review(WINDOW_BYTES) == 0
    assert outbox.review_at == -1

    append(outbox, Text(PIECE), attempt=2)
    take(outbox, reader, 1)
    assert outbox.review(WINDOW_BYTES) == 100


@pytest.mark.parametrize("window_bytes", [1, 2, 3, 4, 7])
def test_tiny_window_is_reviewed_behind_every_event(outbox, window_bytes):
    reader = outbox.attach()
    for number in range(3):
        outbox.append(1, 0.0, [Text("a")], window_bytes)
        assert outbox.review_at == number + 1
        outbox.take(reader)
        outbox.review(window_bytes)
