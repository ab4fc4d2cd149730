"""The stop of the I/O thread waits for the ends of all processes, however long they take to die."""

import pytest

from tidegate.testing.eventually import eventually


PATIENCE_S = 30.0
"""What a test waits for a process that gets no processor; a guard, and not a measurement."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr("tidegate.actors.supervisor.process.DEATH_S", PATIENCE_S)


@pytest.fixture
def stop_while_starved(starved):
    """Stop while a process gets no processor to die with, for longer than any of the graces."""

    def stop(probe, pid):
        with starved(pid):
            probe.io.stop()
            probe.io.join(2.0)
        probe.io.join(PATIENCE_S)
        assert not probe.io.is_alive()

    return stop


def importing(probe, tmp_path):
    """Return the zygote's process once it is in the middle of an import that takes for ever."""
    zygote = eventually(lambda: probe.io._workers.starts._zygote)
    eventually((tmp_path / "importing").exists, within_s=30)
    return zygote.popen.pid


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "Path(__file__).with_name('importing').touch()\ntime.sleep(600)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "slow_to_import"


def test_zygote_that_imports_is_killed_and_reaped(
    make_probe, children, slow_module, tmp_path, stop_while_starved
):
    before = children()
    probe = make_probe(start_method="zygote", preload=(slow_module,))
    probe.io.spawn(1)
    pid = importing(probe, tmp_path)
    assert children() == before | {pid}

    stop_while_starved(probe, pid)

    assert children() == before


def test_worker_that_takes_long_to_die_is_waited_for(
    probe, start_method, gone, children, stop_while_starved
):
    before = children()
    pid = probe.ready()

    stop_while_starved(probe, pid)

    assert gone(pid)
    assert children() <= before
