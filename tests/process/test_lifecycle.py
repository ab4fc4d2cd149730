"""The I/O thread starts, fails, recovers and stops, and leaves nothing behind."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tidegate.actors.supervisor.io import WorkerIo
from tidegate.errors import ConfigurationError
from tidegate.protocol.attempts import Deltas, Opened, Ping, Pong, WorkerReady
from tidegate.protocol.workers import WorkerLost
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import start


def descriptors():
    return {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}


def test_hundred_workers_start_and_die_and_nothing_is_left(forking, gone):
    before = descriptors()
    generations = range(1, 101)
    for generation in generations:
        forking.io.spawn(generation)
    eventually(lambda: len(forking.all(WorkerReady)) == 100, within_s=30)
    pids = [each.pid for each in forking.all(WorkerReady)]
    for generation in generations:
        forking.io.kill(generation)

    eventually(lambda: len(forking.all(WorkerLost)) == 100)
    eventually(lambda: gone(*pids))
    eventually(lambda: descriptors() == before)
    assert forking.io.zygote is not None


@pytest.mark.parametrize("state", ["sleeps", "hangs", "is stopped", "starts", "floods"])
def test_stop_ends_workers_in_any_state_and_leaves_nothing(
    make_probe, start_method, gone, children, state
):
    before, children_before = descriptors(), children()
    probe = make_probe(start_method=start_method)
    if state == "starts":
        probe.io.spawn(1)
    else:
        pid = probe.ready()
    if state == "hangs":
        probe.io.send(1, start(5, "hang"))
        probe.wait_for(Opened)
    elif state == "is stopped":
        os.kill(pid, signal.SIGSTOP)
    elif state == "floods":
        probe.io.send(1, start(5, "flood"))
        probe.wait_for(Deltas)
    zygote = probe.io.zygote

    probe.io.stop()
    probe.io.join(10)

    assert not probe.io.is_alive()
    assert state == "starts" or gone(pid)
    assert zygote is None or gone(zygote.pid)
    assert children() <= children_before
    assert descriptors() <= before
    assert probe.all(WorkerLost) == []
    assert probe.crashes == []


def test_stop_may_be_called_again_and_from_any_thread(probe):
    probe.ready()
    stoppers = [threading.Thread(target=probe.io.stop) for _ in range(8)]
    for stopper in stoppers:
        stopper.start()
    for stopper in stoppers:
        stopper.join()
    probe.io.join(10)

    probe.io.stop()
    probe.io.spawn(2)
    probe.io.send(1, Ping(1))
    assert not probe.io.is_alive()


def test_stop_without_a_start_leaves_nothing(make_probe):
    before = descriptors()
    probe = make_probe(started=False)

    probe.io.stop()

    assert descriptors() == before


def test_nothing_is_delivered_after_stop(forking):
    forking.hold_at(str)
    forking.io.ask(-1, "hold")
    assert forking.held.wait(10)
    forking.io.start_timer("name", 0.0, "alarm")
    forking.io.stop()
    forking.io.ask(-1, "question")
    forking.let_go()

    forking.io.join(10)
    assert forking.said == ["hold"]


def test_two_of_them_in_one_process_do_not_meddle(make_probe):
    one, other = make_probe(), make_probe()
    pids = [one.ready(1), other.ready(1)]

    one.io.stop()
    one.io.join(10)
    other.io.send(1, Ping(3))

    other.wait_for(Pong)
    assert len(set(pids)) == 2


def test_workers_outlive_the_thread_that_made_them(make_probe, start_method):
    probes = []
    maker = threading.Thread(target=lambda: probes.append(make_probe(start_method=start_method)))
    maker.start()
    maker.join()
    (probe,) = probes
    spawner = threading.Thread(target=probe.ready)
    spawner.start()
    spawner.join()

    probe.io.send(1, Ping(3))

    probe.wait_for(Pong)


def test_delivery_that_fails_ends_the_thread_and_kills_the_workers(make_probe, start_method, gone):
    before = descriptors()
    pids = []
    crashes = []

    def deliver(messages):
        for each in messages:
            if isinstance(each, WorkerReady):
                pids.append(each.pid)
            else:
                raise SystemExit("no more")

    probe = make_probe(start_method=start_method, deliver=deliver)
    probe.io._crashed = crashes.append
    probe.io.spawn(1)
    probe.io.spawn(2)
    eventually(lambda: len(pids) == 2)

    probe.io.send(1, Ping(1))

    probe.io.join(10)
    assert not probe.io.is_alive()
    assert [type(error) for error in crashes] == [SystemExit]
    eventually(lambda: gone(*pids))
    assert descriptors() <= before


def test_zygote_that_died_is_replaced_by_the_next_start(forking, gone, caplog):
    pid = forking.ready(1)
    first = forking.io.zygote.pid

    os.kill(first, signal.SIGKILL)

    assert forking.lost(1).exitcode is None
    eventually(lambda: gone(pid, first))
    forking.ready(2)
    assert forking.io.zygote.pid != first
    assert "the zygote died" in caplog.text


def test_workers_of_a_zygote_that_died_are_lost_together(forking):
    """Whoever hears of one loss and looks for another worker finds none that is dying."""
    for generation in (1, 2, 3):
        forking.ready(generation)

    os.kill(forking.io.zygote.pid, signal.SIGKILL)

    forking.lost(3)
    [losses] = [each for each in forking.deliveries if isinstance(each[0], WorkerLost)]
    assert losses == [WorkerLost(generation, "its zygote died") for generation in (1, 2, 3)]
    eventually(lambda: forking.io.zygote)  # the next one, which shall be up before the stop


def test_zygote_that_dies_again_and_again_is_done_without(forking, children, caplog):
    for generation in (1, 2, 3):
        forking.ready(generation)
        os.kill(forking.io.zygote.pid, signal.SIGKILL)
        forking.lost(generation)

    pid = forking.ready(4)

    assert forking.io.zygote is None
    assert pid in children()
    assert "workers are exec'd from here on" in caplog.text


def test_starts_asked_for_while_the_zygote_dies_all_have_an_outcome(forking):
    for generation in range(1, 41):
        forking.io.spawn(generation)
    os.kill(forking.io.zygote.pid, signal.SIGKILL)

    def outcomes():
        return {
            each.generation for each in forking.said if isinstance(each, WorkerLost | WorkerReady)
        }

    eventually(lambda: outcomes() == set(range(1, 41)), within_s=30)
    assert len(forking.all(WorkerLost)) == len({e.generation for e in forking.all(WorkerLost)})


def test_zygote_with_a_second_thread_does_not_fork(
    make_probe, children, tmp_path, monkeypatch, caplog
):
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    monkeypatch.syspath_prepend(tmp_path)
    probe = make_probe(start_method="zygote", preload=("threaded",))

    pid = probe.ready()

    assert pid in children()
    assert "has 2 threads and cannot fork" in caplog.text


def test_preload_imports_and_calls_and_reports_what_it_cannot(
    make_probe, tmp_path, monkeypatch, caplog
):
    (tmp_path / "ours.py").write_text(
        "from pathlib import Path\ndef warm():\n    Path(__file__).with_name('warm').touch()"
    )
    monkeypatch.syspath_prepend(tmp_path)
    probe = make_probe(start_method="zygote", preload=("ours:warm", "nowhere", "ours:cold"))

    probe.ready()

    assert (tmp_path / "warm").exists()
    assert probe.io.zygote.complaints == (
        "preload of nowhere: ModuleNotFoundError: No module named 'nowhere'",
        "preload of ours:cold: AttributeError: module 'ours' has no attribute 'cold'",
    )
    assert "No module named 'nowhere'" in caplog.text


def test_interpreter_that_is_missing_is_a_loss_with_the_cause(make_probe, monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    probe = make_probe(start_method="zygote")

    probe.io.spawn(1)

    assert "cannot be started: [Errno 2]" in probe.lost().detail
    assert probe.said == [probe.lost()]


def test_start_method_that_is_unknown_is_refused(monkeypatch):
    monkeypatch.setenv("TIDEGATE_START_METHOD", "spawn")

    with pytest.raises(ConfigurationError, match="'spawn' is none of zygote, exec"):
        WorkerIo(deliver=print, crashed=print)


def test_start_method_is_taken_from_the_environment(make_probe, children, monkeypatch):
    monkeypatch.setenv("TIDEGATE_START_METHOD", "exec")
    probe = make_probe()

    assert probe.ready() in children()
