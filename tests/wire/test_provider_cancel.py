"""A cancel of an attempt closes its socket, in whatever state that is."""

import threading

import pytest

from tests.wire.test_provider import kinds, read_to_end, stream
from tidegate.lab import Answer, End, Lab, blast, chat, gate
from tidegate.protocol.attempts import CancelAttempt, Deltas, Ended, Finished, Target


class TestCancel:
    @pytest.fixture
    def cancelled(self, worker):
        """Cancel an attempt, and return all that was heard of it."""

        def cancel(token):
            worker.cancel(token)
            end = worker.end_of(token)
            assert end == Ended(1, token, cancelled=True)
            return worker.heard(token)

        return cancel

    def test_before_the_first_step_sends_nothing(self, worker, lab):
        both = threading.Event()

        def start_and_cancel():
            token = worker.start(lab)
            worker.cancel(token)
            both.set()

        # Both in one turn of the loop, as out of one frame.
        worker.call(start_and_cancel)
        assert both.wait(10)

        assert worker.end_of(1) == Ended(1, 1, cancelled=True)
        assert lab.connections_count == 0

    def test_while_nobody_takes_the_connection(self, worker, cancelled, deaf_port):
        token = worker.start(Target("chat", base_url=f"http://127.0.0.1:{deaf_port}"))

        assert kinds(cancelled(token)) == [Ended]

    def test_while_tls_waits_for_a_word(self, worker, cancelled, mute_port):
        port, listener = mute_port
        token = worker.start(Target("chat", base_url=f"https://127.0.0.1:{port}"))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1), "the handshake has begun"
            cancelled(token)

            read_to_end(connection)

    def test_while_nobody_reads_the_request(self, worker, cancelled, mute_port):
        port, listener = mute_port
        body = b'{"model":"m","messages":["' + b"x" * (32 << 20) + b'"]}'
        token = worker.start(Target("chat", base_url=f"http://127.0.0.1:{port}"), body)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1), "the request has begun"
            cancelled(token)

            assert read_to_end(connection) < len(body)

    def test_before_the_headers(self, worker, lab, cancelled):
        lab.add(Answer((gate("never"),), headers_with_first_frame=True))
        token = worker.start(lab)
        lab.reached("never")

        assert kinds(cancelled(token)) == [Ended]
        lab.wait_closed(0)

    def test_in_the_stream(self, worker, lab, cancelled):
        lab.add(stream(chat.text("a"), gate("never")))
        token = worker.start(lab)
        worker.wait_text(token, "a")

        cancelled(token)
        assert lab.wait_closed(0).how == "eof"

    def test_in_a_stream_over_tls(self, worker, target_of, cancelled):
        with Lab([stream(chat.text("a"), gate("never"))], tls=True) as lab:
            token = worker.start(target_of(lab, verify=lab.ca_file))
            worker.wait_text(token, "a")

            cancelled(token)
            lab.wait_closed(0)

    def test_while_resting_for_credit(self, worker, lab, cancelled):
        lab.add(stream(chat.text("a"), blast([chat.text("x" * 1000)], times=5000), End.HOLD))
        token = worker.start(lab, limit_bytes=1)
        worker.wait_for(token, Deltas)

        cancelled(token)
        lab.wait_closed(0)

    def test_while_the_host_does_not_keep_up(self, worker, lab, cancelled):
        worker.call(worker.uplink.clear.clear)
        lab.add(stream(chat.text("a"), End.HOLD))
        token = worker.start(lab)
        worker.wait_text(token, "a")

        cancelled(token)
        lab.wait_closed(0)

    def test_behind_evidence(self, worker, lab, cancelled):
        lab.add(stream(chat.text("a"), chat.finish(), End.HOLD))
        token = worker.start(lab)
        worker.wait_for(token, Finished)

        cancelled(token)
        lab.wait_closed(0)

    def test_while_draining_is_answered_once_more(self, worker, lab):
        lab.add(stream(chat.text("a"), chat.finish(), chat.done(), gate("never")))
        token = worker.start(lab)
        assert not worker.end_of(token).cancelled

        worker.cancel(token)
        worker.wait(token, lambda heard: kinds(heard).count(Ended) == 2)
        assert worker.heard(token)[-1] == Ended(1, token, cancelled=True)
        lab.wait_closed(0)

    def test_twice_is_answered_once(self, worker, lab, cancelled):
        lab.add(stream(chat.text("a"), End.HOLD))
        token = worker.start(lab)
        worker.wait_text(token, "a")

        def cancel_twice():
            for _ in range(2):
                worker.providers.receive(CancelAttempt(1, token))

        worker.call(cancel_twice)  # between two calls it might end, and a second answer be right
        worker.end_of(token)
        cancelled(99)  # what was on its way has come
        assert kinds(worker.heard(token)).count(Ended) == 1

    def test_of_an_unknown_attempt_is_answered(self, worker, cancelled):
        assert kinds(cancelled(99)) == [Ended]

    def test_hits_no_other(self, worker, lab, cancelled):
        lab.add(stream(chat.text("a"), End.HOLD))
        one = worker.start(lab)
        worker.wait_text(one, "a")
        lab.add(stream(chat.text("b"), gate("go"), chat.finish(), chat.done()))
        other = worker.start(lab)
        worker.wait_text(other, "b")

        cancelled(one)
        lab.open("go")

        assert worker.end_of(other) == Ended(1, other)
