"""What is written is there for every reader, in order, once it is said to be."""

import json
import threading

import msgspec
import pytest

from tests.daemon.journal.conftest import GUARD_S, START_S
from tidegate.daemon.journal import Entry, FinalState, JournalError, TurnRecord
from tidegate.protocol.answers import Answer, Part, Usage
from tidegate.protocol.events import AttemptStarted, TextDelta, TurnCompleted, TurnInterrupted


def encoded(events):
    return [msgspec.json.encode(event) for event in events]


def texts(lines):
    return [msgspec.json.decode(line).get("text") for line in lines]


def test_events_are_read_as_they_were_written(pen, started, words, read):
    pen.begin("turn_1")
    events = [started("turn_1"), *words("turn_1", 1, "Hel", "lo\nyou", "\x00é\u2028")]
    pen.write("turn_1", *events[:2])
    pen.write("turn_1", *events[2:])

    assert read(pen.journal, "turn_1") == encoded(events)
    assert read(pen.journal, "turn_1", after=2) == encoded(events[3:])
    assert read(pen.journal, "turn_1", limit_bytes=1) == encoded(events)


def test_what_is_queued_together_is_one_commit_and_in_order(pen, started, words, read):
    for turn_id in ("turn_1", "turn_2"):
        pen.begin(turn_id)
        pen.write(turn_id, started(turn_id))
    before = pen.journal.statistics()
    called = []
    with pen.held():
        for offset in range(1, 101):
            for turn_id in ("turn_1", "turn_2"):
                event = words(turn_id, offset, str(offset))
                done = lambda name=(turn_id, offset): called.append(name)  # noqa: E731
                pen.journal.write(Entry(turn_id, offset, event, done))
    pen.flush()
    after = pen.journal.statistics()

    # One held the writer up, one is the group, and one was waited for, alone or in the group.
    assert after.commits - before.commits <= 3
    assert after.entries - before.entries == 200
    assert after.events - before.events == 200
    assert called == [(name, o) for o in range(1, 101) for name in ("turn_1", "turn_2")]
    assert texts(read(pen.journal, "turn_1", after=0)) == [str(o) for o in range(1, 101)]


def test_what_is_said_to_be_done_can_be_read_at_that_moment(pen, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    seen = []

    def look():
        seen.append(pen.journal.events("turn_1", -1, 1 << 20).items[-1][1])

    for offset in range(1, 50):
        pen.journal.write(Entry("turn_1", offset, words("turn_1", offset, "x"), look))
    pen.flush()

    assert len(seen) == 49
    assert all(newest >= offset for offset, newest in enumerate(seen, 1))


def test_writers_in_many_threads_keep_their_order(pen, started, words, read):
    turns = [f"turn_{number}" for number in range(4)]

    def write(turn_id):
        pen.journal.begin(TurnRecord(id=turn_id), lambda _: None)
        pen.entry(turn_id, 0, started(turn_id))
        for offset in range(1, 200):
            pen.entry(turn_id, offset, *words(turn_id, offset, str(offset)))

    threads = [threading.Thread(target=write, args=(turn_id,)) for turn_id in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD_S)
    pen.flush()

    for turn_id in turns:
        assert texts(read(pen.journal, turn_id, after=0)) == [str(o) for o in range(1, 200)]


def test_readers_in_many_threads_see_what_is_there_while_it_grows(pen, started, words, read):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    ended, seen = threading.Event(), []

    def look():
        lengths = [0]
        while not ended.is_set():
            lengths.append(len(read(pen.journal, "turn_1", limit_bytes=4000)))
            assert pen.journal.turns(limit=5)[0].id == "turn_1"
        seen.append(lengths)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for offset in range(1, 500):
        pen.write("turn_1", *words("turn_1", offset, str(offset)))
    ended.set()
    for thread in threads:
        thread.join(GUARD_S)

    assert len(seen) == 4
    assert all(lengths == sorted(lengths) for lengths in seen)
    assert texts(read(pen.journal, "turn_1", after=0)) == [str(o) for o in range(1, 500)]


def test_turn_is_kept_with_all_that_was_said_of_it(pen):
    fields = {
        "owner": "digest",
        "endpoint": "main",
        "wire": "messages",
        "model": "modèle",
        "api": "turns",
        "on_disconnect": "continue:30",
        "created_at": START_S - 1,
        "idempotency_key": "key",
        "idempotency_digest": "of the body",
    }
    reserved = pen.begin("turn_1", **fields)

    assert reserved.record == pen.journal.turn("turn_1")
    assert reserved.record == TurnRecord(id="turn_1", changed_at=START_S, **fields)
    assert (reserved.replayed, reserved.conflict) == (False, False)


def test_attempts_and_the_end_change_the_turn_by_themselves(pen, started, words):
    pen.begin("turn_1")
    queued = pen.journal.turn("turn_1")
    pen.write("turn_1", started("turn_1"))
    running = pen.journal.turn("turn_1")
    pen.write("turn_1", started("turn_1", 1, attempt=2), *words("turn_1", 2, "Hi", attempt=2))
    answer = Answer(text="Hi", finish="stop", usage=Usage(input_tokens=3), model="m-1")
    pen.write("turn_1", TurnCompleted("turn_1", 2, 3, START_S + 5, answer=answer))
    completed = pen.journal.turn("turn_1")

    assert (queued.state, queued.attempt, queued.ended_at, queued.final) == ("queued", 0, None, b"")
    assert (running.state, running.attempt) == ("running", 1)
    assert (completed.state, completed.attempt) == ("completed", 2)
    assert completed.ended_at == START_S + 5
    final = msgspec.json.decode(completed.final, type=FinalState)
    assert (final.state, final.offset, final.text_chars) == ("completed", 3, 2)
    assert (final.finish, final.usage, final.model) == ("stop", answer.usage, "m-1")
    stored = pen.journal.events("turn_1", -1, 1 << 20)
    assert stored.ended
    assert completed.kept_bytes == sum(len(line) + 1 for _, _, line in stored.items)


def test_end_is_said_only_behind_the_last_event(pen, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a" * 100, "b" * 100))
    open_turn = pen.journal.events("turn_1", 2, 1 << 20)
    pen.write("turn_1", TurnInterrupted("turn_1", 1, 3, START_S, reason="r", answer=Answer()))
    first = pen.journal.events("turn_1", -1, 200)
    rest = pen.journal.events("turn_1", first.items[-1][1], 1 << 20)
    nothing = pen.journal.events("turn_1", 3, 1 << 20)

    assert open_turn == ([], False, False)
    assert (len(first.items), first.ended) == (1, False)
    assert (len(rest.items), rest.ended) == (3, True)
    assert nothing == ([], True, False)


def test_turns_are_listed_newest_first_by_owner_state_and_page(pen, started):
    for number in range(6):
        pen.begin(f"turn_{number}", owner="ab"[number % 2])
    pen.write("turn_4", started("turn_4"))
    listed = lambda **given: [turn.id[-1] for turn in pen.journal.turns(**given)]  # noqa: E731

    assert listed(limit=10) == list("543210")
    assert listed(limit=2) == list("54")
    assert listed(limit=2, before="turn_4") == list("32")
    assert listed(limit=10, owner="a") == list("420")
    assert listed(limit=1, owner="a", before="turn_4") == ["2"]
    assert listed(limit=10, state="running") == ["4"]
    assert listed(limit=10, owner="b", state="running") == []
    assert listed(limit=10, before="turn_nobody") == []
    assert listed(limit=10, owner="a", before="turn_5") == [], "a turn of another owner is none"


def test_page_is_full_whatever_is_written_of_turns_that_are_not_taken_on(pen, started):
    for number in range(8):
        pen.begin(f"turn_{number}", owner="ab"[number % 2])
    for turn_id in ("turn_0", "turn_2", "turn_5"):
        end = TurnCompleted(turn_id, 1, 1, START_S, answer=Answer())
        pen.write(turn_id, started(turn_id), end)
    live = {"turn_4": "running", "turn_3": "queued", "turn_2": "running"}

    def listed(**given):
        return [turn.id[-1] for turn in pen.journal.turns(live=live, **given)]

    assert listed(limit=10) == list("54320")
    assert listed(limit=3) == list("543")
    assert listed(limit=3, before="turn_3") == list("20")
    assert listed(limit=2, owner="a") == list("42")
    assert listed(limit=10, state="running") == list("42"), "as it is in memory"
    assert listed(limit=10, state="queued") == ["3"]
    assert listed(limit=10, state="completed") == list("50")
    assert listed(limit=1, state="completed", before="turn_5") == ["0"]


def test_forgotten_turn_is_gone_and_what_comes_for_it_is_refused(pen, started, words):
    pen.begin("turn_1", idempotency_key="k", idempotency_digest="d")
    pen.write("turn_1", started("turn_1"))
    with pen.held():
        pen.entry("turn_1", 1, *words("turn_1", 1, "too late"))
        pen.journal.forget("turn_1", lambda _: None)
        late = pen.entry("turn_1", 2, *words("turn_1", 2, "later"))
    late.wait()

    assert pen.journal.turn("turn_1") is None
    assert pen.journal.events("turn_1", -1, 1 << 20) == ([], True, True)
    assert pen.journal.statistics().refused == 1
    assert pen.forget("turn_1") is False
    assert pen.begin("turn_2", idempotency_key="k", idempotency_digest="d").replayed is False
    assert pen.journal.events("turn_2", -1, 1 << 20) == ([], False, False)


def test_text_that_is_no_unicode_is_stored_all_the_same(pen, started, words, new_pen):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "half \ud83d", "a", "\udc00"))
    stored = pen.journal.events("turn_1", 0, 1 << 20)
    pen.journal.close()
    again = new_pen().journal
    end = again.events("turn_1", 3, 1 << 20)

    assert [json.loads(line)["text"] for _, _, line in stored.items] == [
        "half \ud83d",
        "a",
        "\udc00",
    ]
    assert [kind for kind, _, _ in end.items] == ["turn.failed"]
    assert json.loads(end.items[0][2])["answer"]["text"] == "half \ud83da\udc00"


def test_answer_that_is_nested_too_deep_is_stored_without_its_parts(pen, started):
    deep = {}
    for _ in range(100_000):
        deep = {"deeper": deep}
    pen.begin("turn_1")
    answer = Answer(text="kept", parts=(Part(index=0, data=deep),))
    pen.write("turn_1", started("turn_1"), TurnCompleted("turn_1", 1, 1, START_S, answer=answer))
    kind, _, line = pen.journal.events("turn_1", 0, 1 << 20).items[0]

    assert kind == "turn.completed"
    assert msgspec.json.decode(line, type=TurnCompleted).answer == Answer(text="kept")
    while deep:
        deep = deep.pop("deeper")  # to free it in one go takes more than the stack


def test_many_events_at_once_come_in_several_rows(pen, started, words, read):
    pen.begin("turn_1")
    events = [started("turn_1"), *words("turn_1", 1, *map(str, range(3000)))]
    pen.write("turn_1", *events)

    assert read(pen.journal, "turn_1", limit_bytes=5000) == encoded(events)
    assert read(pen.journal, "turn_1", after=1234) == encoded(events[1235:])


def test_bad_calls_are_refused_in_their_caller(pen, words):
    with pytest.raises(ValueError, match="from offset 3 on begins with offset 2"):
        pen.journal.write(Entry("turn_1", 3, words("turn_1", 2, "x"), lambda: None))
    with pytest.raises(JournalError, match=r"model .* half a character"):
        pen.journal.begin(TurnRecord(id="turn_1", model="\ud800"), lambda _: None)


def test_callback_that_fails_is_logged_and_holds_up_nobody(pen, started, caplog):
    pen.begin("turn_1")

    def fail():
        raise RuntimeError("its own defect")

    pen.journal.write(Entry("turn_1", 0, [started("turn_1")], fail))
    pen.flush()

    assert "its own defect" in caplog.text
    assert len(pen.journal.events("turn_1", -1, 1 << 20).items) == 1


def test_closed_journal_takes_and_gives_nothing(pen, started):
    pen.begin("turn_1")
    told = pen.entry("turn_1", 0, started("turn_1"))
    pen.journal.close()
    pen.journal.close()

    assert told == [None]
    with pytest.raises(JournalError, match="closed"):
        pen.journal.write(Entry("turn_1", 1, [], lambda: None))
    with pytest.raises(JournalError, match="closed"):
        pen.journal.turn("turn_1")


def test_statistics_count_what_was_done(pen, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b"))
    pen.withdraw("turn_1", 2)
    found = pen.journal.statistics()

    assert (found.entries, found.events, found.withdrawals, found.refused) == (2, 3, 1, 0)
    assert found.commits >= 3
    assert found.commit_buckets[-1] == (float("inf"), found.commits)
    assert found.commit_seconds > 0
    assert found.data_bytes > 0
    assert found.file_bytes > 0
    assert (found.queued, found.trouble) == (0, None)


def test_missing_offset_is_logged_and_shown(pen, started, words, caplog):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    pen.write("turn_1", *words("turn_1", 5, "later"))
    found = pen.journal.events("turn_1", -1, 1 << 20)

    assert [offset for _, offset, _ in found.items] == [0, 5]
    assert "offsets 1 to 4 are missing" in caplog.text


def test_type_of_an_event_is_its_dotted_name(pen, started):
    pen.begin("turn_1")
    pen.write(
        "turn_1", AttemptStarted("turn_1", 1, 0, START_S), TextDelta("turn_1", 1, 1, 0.0, "x")
    )

    kinds = [kind for kind, _, _ in pen.journal.events("turn_1", -1, 1 << 20).items]
    assert kinds == ["attempt.started", "text.delta"]
