"""Custom streams in workers of their own: real processes that block, crash and are killed."""

import os

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


WHERE = [("where",), ("text", "a"), ("finish",)]


@pytest.fixture
def ask(ask_at):
    def make(how, *pieces, **options):
        return ask_at("worker", how, *pieces, **options)

    return make


def pid_of(answer):
    return int(answer.response_id.partition("/")[0])


def test_stream_runs_in_a_process_of_its_own_that_serves_again(runtime, ask):
    first = runtime.run(ask("told", *WHERE))
    second = runtime.run(ask("told_async", *WHERE))

    assert pid_of(first) != os.getpid()
    assert pid_of(second) == pid_of(first)
    # The same object served both; so the factory was called once.
    assert second.model == first.model


def test_streams_at_the_same_time_are_in_different_processes(runtime, ask):
    with Lab([Answer([chat.text("a"), End.HOLD], repeat=True)]) as lab:
        held = runtime.start(ask("interruptible", url=f"{lab.url}/chat/completions"))
        Reading(held).until(tg.TextDelta)
        blocked = runtime.start(ask("stubborn"))
        Reading(blocked).until(tg.TextDelta)

        answers = [runtime.run(ask("told", *WHERE)) for _ in range(2)]

        assert len({pid_of(answer) for answer in answers}) == 1
        assert runtime.statistics().running == 2
        for turn in (held, blocked):
            turn.interrupt()


def test_factory_of_another_name_has_another_process(runtime, ask):
    one = runtime.run(ask("told", *WHERE))
    other = runtime.run(ask("told", *WHERE, factory="lab_streams_again:Streams"))

    assert pid_of(one) != pid_of(other)


@pytest.mark.parametrize("how", ["asynchronous", "interruptible"])
def test_interrupt_closes_the_stream_and_neither_client_nor_worker(runtime, ask, notes, how):
    before = runtime.run(ask_without_notes(ask))
    killed = runtime.statistics().workers_killed
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        turn = runtime.start(ask(how, url=f"{lab.url}/chat/completions"))
        Reading(turn).until(tg.TextDelta)

        assert turn.interrupt("enough")

        with pytest.raises(tg.Interrupted, match="enough"):
            turn.result()
        assert lab.wait_closed(0).how in ("eof", "reset")
        notes.wait("closed" if how == "asynchronous" else "unblocked")
        assert len(lab.requests) == 1
    after = eventually(lambda: served_by(runtime, ask, pid_of(before)))
    assert int(after.model) == int(before.model)
    assert notes.lines.count("closed" if how == "asynchronous" else "unblocked") == 1
    assert not [line for line in notes.lines if line.startswith("factory closed")]
    assert runtime.statistics().workers_killed == killed


def served_by(runtime, ask, pid):
    """Ask, and say whether that process has answered."""
    answer = runtime.run(ask_without_notes(ask))
    return answer if pid_of(answer) == pid else None


@pytest.mark.parametrize("how", ["stubborn", "busy"])
def test_stream_that_does_not_end_costs_its_worker_and_nobody_else(runtime, ask, notes, how):
    before = runtime.statistics()
    request = ask(how)
    turn = runtime.start(request)
    Reading(turn).until(tg.TextDelta)
    notes.wait("stuck")

    turn.interrupt()

    with pytest.raises(tg.Interrupted):
        turn.result()
    eventually(lambda: runtime.statistics().workers_lost == before.workers_lost + 1)
    after = runtime.statistics()
    assert after.workers_killed == before.workers_killed + 1
    assert runtime.run(ask("told", *WHERE)).finish == "stop"


def test_generator_that_waits_for_a_socket_is_killed_and_the_socket_with_it(runtime, ask):
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        turn = runtime.start(ask("sync", url=f"{lab.url}/chat/completions"))
        Reading(turn).until(tg.TextDelta)

        turn.interrupt()

        assert lab.wait_closed(0).how in ("eof", "reset")


def test_stuck_attempt_is_followed_by_one_that_works(runtime, ask):
    """The stale attempt blocks its thread for ever; the retry has a worker of its own."""
    with Lab([Answer([chat.text("lost"), End.HOLD]), chat.answer("found")]) as lab:
        request = ask(
            "sync",
            url=f"{lab.url}/chat/completions",
            stale_after_s=0.5,
            first_event_timeout_s=30,
            retries=1,
        )

        answer = runtime.run(request)

        assert (answer.text, answer.finish) == ("found", "stop")
        assert [report.outcome for report in answer.attempts] == ["failed", "completed"]
        assert answer.attempts[0].failure.kind == "stalled"
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_worker_that_is_gone_is_told_and_retried_if_the_policy_says_so(runtime, ask):
    with pytest.raises(tg.WorkerLost):
        runtime.run(ask("told", ("text", "a"), ("exit",)))
    with pytest.raises(tg.WorkerLost):
        runtime.run(ask("told", ("text", "a"), ("exit",), retries=1))

    assert runtime.run(ask("told", *WHERE)).finish == "stop"


@pytest.mark.parametrize("how", ["told", "told_async"])
@pytest.mark.parametrize(
    ("piece", "words"), [("leave", "SystemExit: 3"), ("break_out", "BrokenOut: of all")]
)
def test_exit_of_a_stream_ends_its_attempt_alone(runtime, ask, how, piece, words):
    before = runtime.run(ask("told", *WHERE))

    with pytest.raises(tg.InternalError, match=words):
        runtime.run(ask(how, ("text", "a"), (piece,)))

    assert pid_of(runtime.run(ask("told", *WHERE))) == pid_of(before)


def test_window_that_is_full_stops_the_stream(runtime, ask, notes):
    turn = runtime.start(ask("endless", window_bytes=4096))
    notes.wait("3")  # the fourth kilobyte fills the window
    with Lab([chat.answer("a")]):  # whatever else happens meanwhile
        runtime.run(ask_without_notes(ask))

    turn.interrupt()

    notes.wait("closed")
    assert notes.lines == ["0", "1", "2", "3", "closed"]


def ask_without_notes(ask):
    """Make a request that leaves no mark in the test's notes."""
    request = ask("told", *WHERE)
    del request.payload["notes"]
    return request


def test_stream_goes_on_when_its_window_is_free_again(runtime, ask):
    pieces = [("text", "x" * 1024)] * 20
    turn = runtime.start(ask("told", *pieces, ("finish",), window_bytes=4096))

    events = [*turn]

    assert len([event for event in events if isinstance(event, tg.TextDelta)]) == 20
    assert isinstance(events[-1], tg.TurnCompleted)


def test_interrupt_before_the_stream_begins_begins_none(ask, notes):
    with tg.Runtime(workers=1) as runtime:  # cold: no worker can have begun anything
        turn = runtime.start(ask("told", ("text", "a"), ("finish",)))
        turn.interrupt()
        with pytest.raises(tg.Interrupted):
            turn.result()
        # It comes up to find that nothing is wanted of it, and serves the next.
        runtime.run(ask_without_notes(ask))

    assert notes.lines == []


def test_stop_closes_what_the_factory_made(ask, notes):
    with tg.Runtime(workers=1) as runtime:
        runtime.run(ask("told", *WHERE))

    notes.wait("factory closed, client closed: False")


def test_idle_workers_are_few(ask):
    with Lab([Answer([chat.text("a"), End.HOLD], repeat=True)]) as lab, tg.Runtime(workers=1) as r:
        url = f"{lab.url}/chat/completions"
        turns = [r.start(ask("interruptible", url=url)) for _ in range(4)]
        for turn in turns:
            Reading(turn).until(tg.TextDelta)
        assert r.statistics().workers == 2 + 4  # one that is shared, its standby, and these

        for turn in turns:
            turn.interrupt()

        eventually(lambda: r.statistics().workers == 2 + 1)


def test_factory_in_main_is_refused_for_a_worker():
    with pytest.raises(tg.ConfigurationError, match="a __main__ of its own"):
        tg.Endpoint.custom("__main__:make")

    assert tg.Endpoint.custom("__main__:make", "inline").placement == "inline"
