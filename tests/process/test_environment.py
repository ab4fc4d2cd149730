"""What a worker's environment has beside the host's: its allocator gives memory back."""

from pathlib import Path

import pytest


OURS = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "131072"}
NAMES = (*OURS, "GLIBC_TUNABLES")


@pytest.fixture
def allocator_of(monkeypatch, make_probe, start_method):
    """Start a worker under variables, and return what its allocator read at its start."""

    def variables_of(**given):
        for name in NAMES:
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        pid = make_probe(start_method=start_method).ready()
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found = dict(line.decode().split("=", 1) for line in lines if line)
        return {name: found[name] for name in NAMES if name in found}

    return variables_of


def test_worker_gives_memory_back(allocator_of):
    assert allocator_of() == OURS


def test_value_of_the_user_holds(allocator_of):
    given = {"MALLOC_MMAP_THRESHOLD_": "1048576"}

    assert allocator_of(**given) == OURS | given


def test_tunables_of_the_user_hold(allocator_of):
    given = {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=4096"}

    assert allocator_of(**given) == given


def test_tunables_of_other_parts_do_not_matter(allocator_of):
    given = {"GLIBC_TUNABLES": "glibc.pthread.rseq=1"}

    assert allocator_of(**given) == OURS | given
