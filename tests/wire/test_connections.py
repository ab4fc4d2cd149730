"""Connections that are refused, lost or used again, and the clients that own them."""

from pathlib import Path

import pytest

from tests.wire.conftest import Worker
from tests.wire.test_transport import at
from tidegate.lab import Answer, Lab, chat, gate
from tidegate.protocol.attempts import Ended, Target
from tidegate.protocol.failures import FailureKind
from tidegate.testing.eventually import eventually


NOBODYS = """
-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUFIH+Awpsi5mMSc0vOvBCp18rfccwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTIwMTAwMTM1M1oYDzIxMjYxMTA3MDAx
MzUzWjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQmXMYxHRNrpgUlvL3As2PNn+jcwJXmCJ+9nW3Q1KQI02HSUWw+dovVVv39/+sZ
JKZiVetwZmfESWapPTS5rSf3o1MwUTAdBgNVHQ4EFgQU65JXHbGmGF9JSMgGmzHS
lmTSHXQwHwYDVR0jBBgwFoAU65JXHbGmGF9JSMgGmzHSlmTSHXQwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAeYyyvw4y83qouDvqyRKfjP9qjOk4h
NBGphNtzEeeRdwIgRi4r3ILmpfyD1rKVpdtoO0ONWABxomW4WieElZf6U34=
-----END CERTIFICATE-----
"""
"""An authority that has signed for no lab."""


class TestConnection:
    def test_unknown_name(self, worker):
        failure = worker.failure(Target("chat", base_url="http://name.invalid/v1"))

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "dns")
        assert failure.retryable
        assert failure.detail.startswith("no address for name.invalid: ")

    def test_refused(self, worker, dead_port):
        failure = worker.failure(at(dead_port))

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "connect")
        assert failure.detail == f"no connection to 127.0.0.1:{dead_port}: Connection refused"

    def test_nobody_takes_the_connection(self, worker, deaf_port):
        failure = worker.failure(at(deaf_port), connect_timeout_s=0.05)

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "connect")
        assert failure.detail == f"no connection to 127.0.0.1:{deaf_port} in the time for it"

    def test_handshake_hangs(self, worker, mute_port):
        failure = worker.failure(at(mute_port[0], "https"), connect_timeout_s=0.05)

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "connect")

    def test_unknown_certificate(self, worker, target_of):
        with Lab(tls=True) as lab:
            failure = worker.failure(target_of(lab))

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "tls")
        assert not failure.retryable
        words = f"the certificate of 127.0.0.1:{lab.port} cannot be trusted: "
        assert failure.detail.startswith(words)
        assert lab.requests == []

    def test_tls_to_a_plain_server(self, worker, lab):
        failure = worker.failure(at(lab.port, "https"))

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "tls")
        assert failure.detail.startswith(f"no TLS with 127.0.0.1:{lab.port}: ")
        assert "_ssl.c" not in failure.detail

    @pytest.mark.parametrize("verify", ["ca", False])
    def test_certificate_can_be_trusted_or_not_looked_at(self, worker, target_of, verify):
        with Lab([chat.answer("a")], tls=True) as lab:
            target = target_of(lab, verify=lab.ca_file if verify == "ca" else verify)

            assert worker.outcome(target)[0] == "a"

    def test_certificate_file_that_is_not_there(self, worker, target_of):
        with Lab(tls=True) as lab:
            failure = worker.failure(target_of(lab, verify="/nowhere/ca.pem"))

        assert (failure.kind, failure.reason) == (FailureKind.BAD_REQUEST, "verify")

    @pytest.mark.parametrize("named", ["verify", "SSL_CERT_FILE"])
    def test_certificate_file_is_read_anew_once_it_has_changed(
        self, target_of, tmp_path, monkeypatch, named
    ):
        file = tmp_path / "ca.pem"
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with Lab(tls=True) as lab, Worker() as worker:
            lab.add(*[chat.answer("a") for _ in range(3)])
            target = target_of(lab, verify=str(file) if named == "verify" else True)
            file.write_text(NOBODYS)
            assert worker.failure(target).reason == "tls"

            file.write_text(Path(lab.ca_file).read_text())
            for _ in range(2):
                assert worker.outcome(target)[0] == "a"
                eventually(lambda: not worker.providers._attempts)
            assert lab.connections_count == 1  # a client is made anew once alone

            # Nobody trusts it any more, and the connection that is kept does not stay behind.
            file.write_text(NOBODYS)
            assert worker.failure(target).reason == "tls"
            eventually(lambda: lab.open_connections_count == 0)
            assert len(worker.providers._clients._senders) == 1

    @pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/v1", "nonsense"])
    def test_address_that_is_none(self, worker, url):
        failure = worker.failure(Target("chat", base_url=url))

        assert (failure.kind, failure.reason) == (FailureKind.BAD_REQUEST, "url")

    def test_proxy_that_refuses(self, worker, dead_port):
        target = Target("chat", base_url="http://far/", proxy=f"http://127.0.0.1:{dead_port}")

        failure = worker.failure(target)
        assert failure.reason == "proxy"
        assert failure.detail == (
            f"no connection to the proxy 127.0.0.1:{dead_port}: Connection refused"
        )

    def test_proxy_that_is_no_tunnel(self, worker, lab):
        target = Target("chat", base_url="https://far.invalid/", proxy=lab.base)

        failure = worker.failure(target)
        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "proxy")

    def test_answer_that_is_not_http(self, worker, mute_port):
        port, listener = mute_port
        token = worker.start(at(port))
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"SSH-2.0-OpenSSH_9\r\n\r\n")

            failure = worker.end_of(token).failure
        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "protocol")
        assert failure.detail.startswith("the answer is no HTTP: ")
        assert "\n" not in failure.detail


class TestClients:
    def test_endpoint_that_is_gone_is_forgotten(self, worker):
        worker.providers._clients._limit = 2
        with Lab([Answer.json(chat.completion("a"), headers={}) for _ in range(4)]) as lab:
            for key in ("one", "two", "three", "one"):
                assert worker.outcome(Target("chat", base_url=lab.url, api_key=key))[0] == "a"
                eventually(lambda: not worker.providers._attempts)
            eventually(lambda: len(worker.providers._clients._senders) == 2)
            eventually(lambda: lab.open_connections_count == 2)

            assert lab.connections_count == 4

    def test_client_in_use_is_not_closed(self, worker):
        worker.providers._clients._limit = 0
        held = Answer((chat.text("a"), gate("go"), chat.finish(), chat.done()))
        with Lab([held, chat.answer("b")]) as lab:
            token = worker.start(lab)
            worker.wait_text(token, "a")
            worker.outcome(Target("chat", base_url=lab.url, api_key="another"))
            lab.open("go")

            assert worker.end_of(token) == Ended(1, token)
            eventually(lambda: not worker.providers._clients._senders)

    def test_headers_and_query_do_not_make_another_client(self, worker, lab, target_of):
        lab.add(chat.answer("a"), chat.answer("b"))
        worker.outcome(target_of(lab, headers=(("x-turn", "1"),), query=(("n", "1"),)))
        eventually(lambda: not worker.providers._attempts)
        worker.outcome(target_of(lab, headers=(("x-turn", "2"),)))

        assert lab.connections_count == 1
        assert [each.headers["x-turn"] for each in lab.requests] == ["1", "2"]
