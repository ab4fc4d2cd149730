"""The machine of one attempt, one rule at a time."""

from functools import reduce

import pytest

from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.facts import (
    AttemptFailed,
    BatchCame,
    BodyEnded,
    CancelCame,
    CloseSocket,
    CreditCame,
    DrainSocket,
    HeadersCame,
    PreparingBegan,
    PreparingOver,
    Send,
    SendNow,
)
from tidegate.actors.provider.machine import AttemptState, decide, evolve
from tidegate.protocol.answers import Usage
from tidegate.protocol.attempts import (
    Deltas,
    Described,
    Ended,
    Finished,
    Life,
    Opened,
    UsageSeen,
    Waking,
    Woken,
)
from tidegate.protocol.deltas import Reasoning, Text, Tool
from tidegate.protocol.failures import Failure, FailureKind


TURN = 7
TOKEN = 41
USAGE = Usage(input_tokens=3, output_tokens=5)
LOST = Failure(kind=FailureKind.CONNECTION_LOST, reason="reset", retryable=True)
MALFORMED = Failure(kind=FailureKind.MALFORMED, detail="not JSON")


def batch(*deltas, **fields):
    made = Batch()
    made.deltas.extend(deltas)
    made.events = len(deltas) or 1
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def came(*deltas, **fields):
    return BatchCame(batch(*deltas, **fields))


def comments():
    return came(events=0)


def ended(failure=None, *, learned="", **fields):
    return BodyEnded(batch(**fields), failure, learned)


def play(*messages, limit_bytes=1 << 20, now_s=0.0):
    """Return the state behind ``messages``, and everything that the shell was told."""
    state = AttemptState(TURN, TOKEN, limit_bytes)
    effects = []
    for message in messages:
        if isinstance(message, float):
            now_s = message
            continue
        decision = decide(state, message, now_s)
        state = reduce(evolve, decision.events, state)
        effects += decision.effects
    return state, effects


def told(*messages, **options):
    """Return what the host hears."""
    effects = play(HeadersCame(), *messages, **options)[1]
    heard = [each.message for each in effects if isinstance(each, Send | SendNow)]
    assert isinstance(heard.pop(0), Opened)
    return heard


def orders(*messages, **options):
    """Return what the shell is told to do with the socket."""
    effects = play(HeadersCame(), *messages, **options)[1]
    return [each for each in effects if not isinstance(each, Send | SendNow)]


def end_of(*messages, **options):
    [end] = [each for each in told(*messages, **options) if isinstance(each, Ended)]
    return end


def test_headers_open_the_attempt():
    _, effects = play(HeadersCame("req-1"))

    assert effects == [Send(Opened(TURN, TOKEN, "req-1"))]


def test_import_is_told_before_it_can_hold_up_the_loop():
    state, effects = play(PreparingBegan(), PreparingOver())

    assert effects == [SendNow(Waking(TURN, TOKEN)), Send(Woken(TURN, TOKEN))]
    assert state == play()[0]


def test_import_that_is_over_behind_the_end_is_not_told():
    _, effects = play(PreparingBegan(), CancelCame(), PreparingOver())

    assert effects[-1] == SendNow(Ended(TURN, TOKEN, cancelled=True))


def test_deltas_of_one_read_go_in_one_message():
    assert told(came(Text("a"), Text("b"))) == [
        Deltas(TURN, TOKEN, 0, (Text("a"), Text("b"))),
    ]


def test_seq_counts_the_deltas_of_all_reads():
    heard = told(came(Text("a"), Text("b")), comments(), came(Tool(0, "id", "f")), came(Text("c")))

    assert [each.seq for each in heard if isinstance(each, Deltas)] == [0, 2, 3]


def test_what_the_response_is_called_goes_before_its_deltas():
    heard = told(came(Text("a"), described=("r-1", "m-1", 9)))

    assert heard == [
        Described(TURN, TOKEN, "r-1", "m-1", 9),
        Deltas(TURN, TOKEN, 0, (Text("a"),)),
    ]


def test_first_event_without_content_is_reported_as_life():
    assert told(came()) == [Life(TURN, TOKEN, event=True)]


def test_first_bytes_without_an_event_are_reported_as_such():
    assert told(comments()) == [Life(TURN, TOKEN, event=False)]


def test_first_event_is_reported_at_once_behind_a_comment():
    assert told(comments(), 0.1, came()) == [
        Life(TURN, TOKEN, event=False),
        Life(TURN, TOKEN, event=True),
    ]


def test_life_is_reported_once_a_second():
    heard = told(came(), 0.5, came(), 0.999, comments(), 1.0, comments(), 1.5, came(), 2.0, came())

    assert [each.event for each in heard] == [True, False, True]


def test_how_often_life_is_reported_can_be_ordered():
    state = AttemptState(TURN, TOKEN, 99, life_every_s=0.25)
    state = reduce(evolve, decide(state, came(), 0.0).events, state)

    assert decide(state, came(), 0.2).effects == ()
    assert decide(state, came(), 0.25).effects == (Send(Life(TURN, TOKEN)),)


@pytest.mark.parametrize(
    "delta",
    [
        Text("a"),
        Text(" "),
        Reasoning("r"),
        Tool(0, arguments="{"),
        Tool(0, id="i"),
        Tool(0, name="f"),
    ],
)
def test_progress_needs_no_life(delta):
    assert [type(each) for each in told(came(delta))] == [Deltas]


@pytest.mark.parametrize("delta", [Text(""), Reasoning(""), Tool(0)])
def test_an_empty_delta_is_life(delta):
    assert told(came(delta)) == [
        Deltas(TURN, TOKEN, 0, (delta,)),
        Life(TURN, TOKEN, event=True),
    ]


def test_life_behind_progress_counts_on_its_own_clock():
    heard = told(came(Text("a")), 0.5, came(), 0.9, came(), 1.5, came())

    assert [type(each) for each in heard] == [Deltas, Life, Life]


def test_evidence_goes_behind_the_deltas_and_before_usage():
    assert told(came(Text("a"), finishes=("stop",), usage=USAGE)) == [
        Deltas(TURN, TOKEN, 0, (Text("a"),)),
        Finished(TURN, TOKEN, 1, ("stop",)),
        UsageSeen(TURN, TOKEN, USAGE),
    ]


def test_evidence_alone_is_an_event():
    state, _ = play(HeadersCame(), came(finishes=("stop",)))

    assert state.event_seen


def test_usage_behind_evidence_is_reported():
    heard = told(came(finishes=("length",)), came(usage=USAGE))

    assert heard == [Finished(TURN, TOKEN, 0, ("length",)), UsageSeen(TURN, TOKEN, USAGE)]


def test_deltas_and_life_behind_evidence_are_not_sent():
    heard = told(came(finishes=("stop",)), 5.0, came(Text("late")), 9.0, comments())

    assert [type(each) for each in heard] == [Finished]


def test_done_ends_at_once_and_the_connection_is_drained_behind_it():
    _, effects = play(HeadersCame(), came(Text("a"), finishes=("stop",)), came(done=True))

    assert effects[-2:] == [SendNow(Ended(TURN, TOKEN)), DrainSocket()]


def test_done_in_the_read_of_the_evidence_goes_behind_everything():
    heard = told(came(Text("a"), finishes=("stop",), usage=USAGE, done=True))

    assert [type(each) for each in heard] == [Deltas, Finished, UsageSeen, Ended]


def test_done_without_evidence_is_truncated():
    messages = came(Text("a")), came(done=True)

    assert end_of(*messages).failure.kind is FailureKind.TRUNCATED
    assert orders(*messages) == [CloseSocket()]


def test_body_that_ends_behind_evidence_is_clean():
    assert end_of(came(finishes=("stop",)), ended()) == Ended(TURN, TOKEN)
    assert orders(came(finishes=("stop",)), ended()) == []


def test_evidence_in_the_rest_of_the_body_counts():
    heard = told(came(Text("a")), ended(LOST, finishes=("stop",)))

    assert heard[1:] == [Finished(TURN, TOKEN, 1, ("stop",)), Ended(TURN, TOKEN)]


def test_end_of_the_body_is_no_life():
    assert [type(each) for each in told(ended(events=0))] == [Ended]


def test_body_that_ends_without_evidence_fails_as_the_decoder_says():
    empty = Failure(kind=FailureKind.EMPTY, retryable=True)

    assert end_of(ended(failure=None)).failure.kind is FailureKind.TRUNCATED
    assert end_of(BodyEnded(batch(failure=empty))).failure is empty


def test_connection_lost_in_the_body_is_truncated():
    failure = end_of(came(Text("a")), ended(LOST)).failure

    assert (failure.kind, failure.reason) == (FailureKind.TRUNCATED, "reset")
    assert orders(came(Text("a")), ended(LOST)) == [CloseSocket()]


def test_connection_lost_before_the_headers_is_just_that():
    _, effects = play(AttemptFailed(LOST, "streaming"))

    assert effects == [CloseSocket(), SendNow(Ended(TURN, TOKEN, LOST, refused="streaming"))]


def test_failure_in_the_stream_goes_behind_the_deltas_of_its_read():
    heard = told(came(Text("a"), failure=MALFORMED))

    assert heard == [Deltas(TURN, TOKEN, 0, (Text("a"),)), Ended(TURN, TOKEN, MALFORMED)]


@pytest.mark.parametrize(
    "after",
    [
        AttemptFailed(LOST),
        ended(LOST),
        came(failure=MALFORMED),
        BodyEnded(batch(failure=MALFORMED)),
    ],
    ids=["failed", "cut", "frame", "eof"],
)
def test_failure_behind_evidence_is_none(after):
    assert end_of(came(finishes=("stop",)), after) == Ended(TURN, TOKEN)


@pytest.mark.parametrize(
    "before",
    [
        [],
        [HeadersCame()],
        [HeadersCame(), came(Text("a"))],
        [HeadersCame(), came(finishes=("stop",))],
    ],
    ids=["connecting", "silent", "streaming", "finished"],
)
def test_cancel_closes_first_and_then_reports(before):
    _, effects = play(*before, CancelCame())

    assert effects[-2:] == [CloseSocket(), SendNow(Ended(TURN, TOKEN, cancelled=True))]


@pytest.mark.parametrize(
    "late",
    [
        AttemptFailed(LOST),
        ended(LOST),
        came(Text("a"), finishes=("stop",), usage=USAGE, done=True),
        CreditCame(1 << 30),
        HeadersCame(),
        CancelCame(),
    ],
    ids=lambda message: type(message).__name__,
)
@pytest.mark.parametrize("end", [CancelCame(), AttemptFailed(LOST), ended()], ids=["c", "f", "e"])
def test_nothing_follows_the_end(end, late):
    before, effects = play(HeadersCame(), came(Text("a")), end)
    after, all_effects = play(HeadersCame(), came(Text("a")), end, late)

    assert all_effects == effects
    assert after == before


def test_body_without_a_frame_that_holds_anything_is_learned():
    empty = Failure(kind=FailureKind.EMPTY, retryable=True)

    assert end_of(ended(contentless=True, failure=None)).learned == "contentless"
    assert end_of(BodyEnded(batch(failure=empty, contentless=True))).learned == "contentless"


def test_what_an_answer_showed_is_learned_only_from_an_answer():
    answer = ended(learned="streaming_ignored", finishes=("stop",))
    error = BodyEnded(batch(failure=MALFORMED), learned="streaming_ignored")

    assert end_of(answer).learned == "streaming_ignored"
    assert end_of(error).learned == ""


def test_state_is_hashable():
    one, _ = play(HeadersCame(), came(Text("a")))
    other, _ = play(HeadersCame(), came(Text("b")))

    assert hash(one) == hash(other)
