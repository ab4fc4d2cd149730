"""What holds for every test: nothing is left behind when the last one is done."""

import multiprocessing.resource_tracker
import os
import threading
from pathlib import Path

import pytest

from tidegate.testing.eventually import eventually


PROC = Path("/proc")


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind():
    """Compare with what was there before the first test, and name what is new."""
    before = open_descriptors()
    yield
    eventually(lambda: Nothing(leftover(before)), within_s=20)


class Nothing:
    """True when empty; otherwise its repr is the failure's text."""

    def __init__(self, found):
        self._found = found

    def __bool__(self):
        return not self._found

    def __repr__(self):
        return f"left behind: {self._found}"


def leftover(before):
    found = {
        "processes": child_processes(),
        "threads": [each.name for each in threading.enumerate() if keeps_the_process(each)],
        "descriptors": {
            number: target
            for number, target in open_descriptors().items()
            if before.get(number) != target and number != tracker()._fd
        },
    }
    return {kind: things for kind, things in found.items() if things}


def keeps_the_process(thread):
    return not thread.daemon and thread is not threading.main_thread()


def tracker():
    # A spawned multiprocessing child brings this helper of the standard library along;
    # it ends with the interpreter and holds one pipe.
    return multiprocessing.resource_tracker._resource_tracker


def child_processes():
    """Every child, with its command, whoever started it; none where there is no /proc."""
    children = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
            parent = int(rest.rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
        if parent == os.getpid() and int(pid) != tracker()._pid:
            children[int(pid)] = rest.rpartition(")")[0]
    return children


def open_descriptors():
    """Number and target of each open descriptor; none where there is no /proc."""
    descriptors = {}
    for entry in PROC.glob("self/fd/*"):
        try:
            descriptors[int(entry.name)] = str(entry.readlink())
        except OSError:
            continue  # the one that was listing this folder
    return descriptors
