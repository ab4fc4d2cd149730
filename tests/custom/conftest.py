"""Runtimes that find the factories, and requests to the streams that these make."""

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.testing.eventually import eventually


FACTORIES = str(Path(__file__).with_name("factories"))


@pytest.fixture(scope="module", autouse=True)
def _importable():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FACTORIES)
        yield


@pytest.fixture(scope="module")
def shared_runtime(_importable):
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def runtime(shared_runtime):
    """The module's one; what a test has led to, kills included, is over before the next begins."""
    yield shared_runtime
    eventually(lambda: settled(shared_runtime))


def settled(runtime):
    pool = runtime._supervisor.supervision.pool
    return not runtime._channels and all(worker.role != "killed" for worker in pool.workers)


@pytest.fixture
def notes(tmp_path):
    """What streams have noted so far, as lines; ``wait`` for one of them."""
    return Notes(tmp_path / "notes")


class Notes:
    def __init__(self, path):
        self.path = path

    @property
    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    def wait(self, line):
        eventually(lambda: line in self.lines)


@pytest.fixture
def ask_at(notes, request):
    """Make a request to a stream; keywords are fields of its policy."""

    def make(placement, how, *pieces, url="", factory="lab_streams:Streams", **policy):
        endpoint = tg.Endpoint.custom(factory, placement)
        payload = {"how": how, "pieces": pieces, "url": url, "notes": str(notes.path)}
        payload["model"] = request.node.name  # so that no other test's breaker counts
        impatient = {"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy
        return tg.Request(endpoint, payload, policy=tg.Policy(**impatient))

    return make
