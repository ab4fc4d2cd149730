"""What happens when a provider cannot be reached."""

import asyncio
import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.usefixtures("nothing_left")

SYN_SENT = "02"


@pytest.fixture
def closed_port():
    """A port of which it is sure that nobody listens on it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def ask(ask):
    """No worker is killed for being slow: those that replace it would look like left behind."""
    return partial(ask, kill_grace_s=30)


@pytest.fixture(autouse=True)
def _known(runtime, pids_of):
    """The runtime's own processes are there before a test, so they are not left behind by it."""
    pids_of(runtime, 2)


class Deaf:
    """A server whose backlog is full, so that a connect to it never ends."""

    def __init__(self, stack):
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        self.port = server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        # One more than fits: when its SYN is left unanswered, so is everybody's.
        fill = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in fill:
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        eventually(lambda: self.waiting() == 1)

    def waiting(self):
        """Count the sockets of this machine that try to connect."""
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        address = f":{self.port:04X}"
        return sum(row[2].endswith(address) and row[3] == SYN_SENT for row in rows)


@pytest.fixture
def deaf():
    with ExitStack() as stack:
        yield Deaf(stack)


def fails(runtime, request):
    """Run a turn that must fail, and return its error."""
    with pytest.raises(tg.TurnError) as raised:
        runtime.run(request)
    return raised.value


def facts(error):
    failure = error.failure
    return type(error), failure.kind, failure.reason, len(error.answer.attempts)


def test_refused_connection_is_retried_and_then_reported(runtime, ask, closed_port):
    error = fails(runtime, ask(f"http://127.0.0.1:{closed_port}/v1"))

    assert facts(error) == (tg.ConnectionLost, "connection_lost", "connect", 3)
    assert isinstance(error, ConnectionError)
    assert str(closed_port) in error.failure.detail
    assert all(each.failure.retryable for each in error.answer.attempts)


def test_name_that_does_not_exist(runtime, ask):
    error = fails(runtime, ask("http://name.invalid/v1", retries=1))

    assert facts(error) == (tg.ConnectionLost, "connection_lost", "dns", 2)
    assert "name.invalid" in error.failure.detail


def test_connect_that_hangs_ends_by_its_own_limit(runtime, ask, deaf):
    error = fails(runtime, ask(deaf, connect_timeout_s=0.2, retries=1))

    assert facts(error) == (tg.ConnectionLost, "connection_lost", "connect", 2)
    eventually(lambda: deaf.waiting() == 1)


def test_interrupt_during_a_connect_closes_the_socket(runtime, ask, deaf):
    turn = runtime.start(ask(deaf))
    eventually(lambda: deaf.waiting() == 2)

    assert turn.interrupt("no patience")

    with pytest.raises(tg.Interrupted, match="no patience"):
        turn.result()
    eventually(lambda: deaf.waiting() == 1)
    assert runtime.statistics().workers_lost == 0


def test_stop_during_a_connect_closes_the_socket(ask, deaf):
    with tg.Runtime(workers=1) as runtime:
        turn = runtime.start(ask(deaf))
        eventually(lambda: deaf.waiting() == 2, within_s=30)  # its workers start meanwhile
        runtime.stop()

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turn.result()
        eventually(lambda: deaf.waiting() == 1)


def test_deadline_during_a_connect(runtime, ask, deaf):
    error = fails(runtime, ask(deaf, deadline_s=0.3))

    assert facts(error) == (tg.StreamStalled, "stalled", "deadline", 1)
    eventually(lambda: deaf.waiting() == 1)


def test_certificate_that_nobody_vouches_for(runtime, ask):
    with Lab([chat.answer("never")], tls=True) as lab:
        error = fails(runtime, ask(lab))

        assert facts(error) == (tg.ConnectionLost, "connection_lost", "tls", 1)
        assert not error.failure.retryable
        assert "certificate" in error.failure.detail.lower()
        assert lab.requests == []


@pytest.mark.parametrize("lax", [False, True], ids=["its own authority", "verify off"])
def test_certificate_of_a_private_authority(runtime, ask, lax):
    with Lab([chat.answer("private")], tls=True) as lab:
        verify = False if lax else lab.ca_file
        answer = runtime.run(ask(lab, options={"verify": verify}))

        assert answer.text == "private"


def test_authority_whose_file_is_missing(runtime, ask, tmp_path):
    missing = str(tmp_path / "no-such-ca.pem")
    with Lab([], tls=True) as lab:
        error = fails(runtime, ask(lab, options={"verify": missing}))

        assert facts(error) == (tg.BadRequest, "bad_request", "verify", 1)
        assert lab.connections_count == 0


def test_tls_spoken_to_a_server_without(runtime, ask):
    with Lab([]) as lab:
        error = fails(runtime, ask(f"https://127.0.0.1:{lab.port}/v1", retries=0))

        assert facts(error) == (tg.ConnectionLost, "connection_lost", "tls", 1)


def test_no_tls_spoken_to_a_server_with(runtime, ask):
    with Lab([], tls=True) as lab:
        error = fails(runtime, ask(f"http://127.0.0.1:{lab.port}/v1", retries=0))

        assert facts(error)[:2] == (tg.ConnectionLost, "connection_lost")


@pytest.mark.parametrize("end", [End.RESET, End.CUT], ids=str)
def test_connection_that_ends_before_the_head_of_the_response(runtime, ask, end):
    gone = Answer([end], headers_with_first_frame=True, repeat=True)
    with Lab([gone]) as lab:
        error = fails(runtime, ask(lab))

        assert facts(error) == (tg.ConnectionLost, "connection_lost", "reset", 3)
        assert len(lab.requests) == 3


def test_proxy_that_is_not_there(runtime, ask, closed_port):
    with Lab([]) as lab:
        proxy = f"http://someone:pass-word@127.0.0.1:{closed_port}"
        error = fails(runtime, ask(lab, options={"proxy": proxy}, retries=0))

        assert facts(error)[:2] == (tg.ConnectionLost, "connection_lost")
        assert "pass-word" not in str(error)
        assert lab.connections_count == 0


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1/v1", "ftp://127.0.0.1/v1", "http://", "http://[::1/v1"]
)
def test_url_that_is_none(runtime, ask, url):
    with pytest.raises(tg.ConfigurationError):
        runtime.start(ask(url))


def test_waiting_in_an_event_loop_for_a_refused_connection(ask, closed_port):
    async def main():
        async with tg.Runtime(workers=1) as runtime:
            with pytest.raises(tg.ConnectionLost):
                await runtime.arun(ask(f"http://127.0.0.1:{closed_port}/v1"))

    asyncio.run(main())
