"""SDKs that are imported when they are needed first, by all who need them together."""

import asyncio
import gc
import importlib
import os
import sys

import pytest

from tidegate.actors.provider.senders import SENDERS, Senders
from tidegate.lab import chat
from tidegate.protocol.attempts import Waking, Woken


WIRE = "smoke"
WAIT = "with open({gate!r}) as gate: gate.read()\n"
"""Whoever opens the gate for writing finds the import there, and closing it lets it go on."""
CLASS = "class Sender: ...\n"


@pytest.fixture
def sdk(tmp_path, monkeypatch):
    """Write the one module of a table of senders, and return such a table's ``Senders``."""

    def make(source):
        (tmp_path / "smoke_signals.py").write_text(source)
        return Senders({WIRE: "smoke_signals:Sender"})

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield make
    sys.modules.pop("smoke_signals", None)
    gc.unfreeze()


@pytest.fixture
def gate(tmp_path):
    path = str(tmp_path / "gate")
    os.mkfifo(path)
    return path


def test_those_who_wait_for_one_import_get_it_though_the_first_of_them_leaves(sdk, gate):
    senders = sdk(WAIT.format(gate=gate) + CLASS)

    async def load():
        first, *others = [asyncio.create_task(senders.load(WIRE)) for _ in range(3)]
        writer = await asyncio.to_thread(open, gate, "w")
        assert senders.find(WIRE) is None
        first.cancel()
        await asyncio.wait([first])
        writer.close()
        return first.cancelled(), await asyncio.gather(*others)

    cancelled, classes = asyncio.run(load())

    assert cancelled
    assert classes == [sys.modules["smoke_signals"].Sender] * 2
    assert senders.find(WIRE) is classes[0]


def test_module_that_is_not_whole_yet_is_not_used(sdk, gate):
    senders = sdk(CLASS + WAIT.format(gate=gate))

    async def look():
        loading = asyncio.create_task(senders.load(WIRE))
        writer = await asyncio.to_thread(open, gate, "w")
        assert hasattr(sys.modules["smoke_signals"], "Sender")
        found = senders.find(WIRE)
        writer.close()
        await loading
        return found

    assert asyncio.run(look()) is None
    assert senders.find(WIRE)


def test_import_that_fails_does_so_for_all_and_is_tried_again(sdk):
    senders = sdk("raise RuntimeError('broken')")

    async def load():
        both = [senders.load(WIRE), senders.load(WIRE)]
        return await asyncio.gather(*both, return_exceptions=True)

    assert [str(error) for error in asyncio.run(load())] == ["broken", "broken"]
    sdk(CLASS)
    assert asyncio.run(senders.load(WIRE)).__name__ == "Sender"


@pytest.mark.parametrize("end", ["", "raise RuntimeError('broken')"])
def test_garbage_is_not_looked_for_in_an_import_and_is_afterwards(sdk, end):
    senders = sdk(f"import gc\nassert not gc.isenabled()\n{CLASS}{end}")

    async def load():
        return await asyncio.gather(senders.load(WIRE), return_exceptions=True)

    [outcome] = asyncio.run(load())

    assert gc.isenabled()
    assert isinstance(outcome, RuntimeError if end else type)


def test_host_hears_of_no_import_where_there_is_none(worker, lab):
    importlib.import_module(SENDERS["chat"].partition(":")[0])
    lab.add(chat.answer("Hello"))
    token = worker.start(lab)
    worker.end_of(token)

    assert worker.text_of(token) == "Hello"
    assert not [each for each in worker.heard(token) if isinstance(each, Waking | Woken)]
