"""A key is good for one request of one owner, and the writer alone says for which."""

import pytest

from tests.daemon.journal.conftest import START_S, Told
from tidegate.daemon.journal import TurnRecord
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import TurnInterrupted


@pytest.fixture
def end(started):
    """End a turn by an interrupt."""

    def write(pen, turn_id):
        answer = Answer()
        event = TurnInterrupted(turn_id, 1, 1, START_S, reason="done with it", answer=answer)
        pen.write(turn_id, started(turn_id), event)

    return write


def given(key="key", digest="body", owner="anna"):
    return {"idempotency_key": key, "idempotency_digest": digest, "owner": owner}


def test_same_key_and_body_gives_the_same_turn(pen):
    first = pen.begin("turn_1", **given())
    again = pen.begin("turn_2", **given())

    assert (first.replayed, first.conflict) == (False, False)
    assert (again.record.id, again.replayed, again.conflict) == ("turn_1", True, False)
    assert pen.journal.turn("turn_2") is None


def test_same_key_with_another_body_is_a_conflict(pen):
    pen.begin("turn_1", **given())
    other = pen.begin("turn_2", **given(digest="other body"))

    assert (other.record.id, other.replayed, other.conflict) == ("turn_1", False, True)
    assert pen.journal.turn("turn_2") is None


def test_keys_of_others_and_turns_without_one_do_not_meet(pen):
    made = [
        pen.begin("turn_1", **given()),
        pen.begin("turn_2", **given(owner="ben")),
        pen.begin("turn_3", **given(key="another")),
        pen.begin("turn_4", owner="anna"),
        pen.begin("turn_5", owner="anna"),
    ]

    assert [each.record.id for each in made] == [f"turn_{number}" for number in range(1, 6)]
    assert not any(each.replayed or each.conflict for each in made)


def test_two_at_the_same_moment_are_one_turn(pen):
    told = [Told() for _ in range(5)]
    with pen.held():
        for number, each in enumerate(told):
            pen.journal.begin(TurnRecord(id=f"turn_{number}", **given()), each)
    found = [each.wait() for each in told]

    assert {each.record.id for each in found} == {"turn_0"}
    assert [each.replayed for each in found] == [False, True, True, True, True]


def test_key_holds_over_a_restart(pen, end, new_pen):
    pen.begin("turn_1", **given())
    end(pen, "turn_1")
    pen.journal.close()
    later = new_pen()
    again = later.begin("turn_2", **given())

    assert (again.record.id, again.record.state, again.replayed) == ("turn_1", "interrupted", True)
    assert later.begin("turn_3", **given(digest="other")).conflict


def test_key_expires_some_time_after_the_turns_end(new_pen, clock, end):
    pen = new_pen(idempotency_keep_s=100)
    pen.begin("turn_1", **given())
    clock.now_s += 1000
    while_running = pen.begin("turn_2", **given(digest="other"))
    end(pen, "turn_1")
    clock.now_s += 99
    kept = pen.begin("turn_2", **given())
    clock.now_s += 1
    expired = pen.begin("turn_2", **given(digest="other"))

    assert while_running.conflict
    assert kept.replayed
    assert expired.record.id == "turn_2"
    assert pen.journal.turn("turn_1").idempotency_key == ""


def test_sweep_drops_expired_keys(new_pen, clock, end):
    pen = new_pen(idempotency_keep_s=100)
    for number in range(300):
        pen.begin(f"turn_{number}", **given(key=f"key {number}"))
        if number:
            end(pen, f"turn_{number}")
    clock.now_s += 100
    pen.sweep()
    keys = {turn.idempotency_key for turn in pen.journal.turns(limit=1000)}

    assert keys == {"", "key 0"}


def test_id_that_is_taken_is_a_conflict(pen):
    pen.begin("turn_1", model="first")
    again = pen.begin("turn_1", model="second")

    assert (again.record.model, again.replayed, again.conflict) == ("first", False, True)
    assert pen.journal.turn("turn_1").model == "first"
