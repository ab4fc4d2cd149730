"""Provider actors against a scripted server: what the host hears, and when the socket closes."""

import tracemalloc
import weakref
from contextlib import suppress

import pytest

from tidegate.lab import Answer, End, blast, chat, gate, raw, send
from tidegate.protocol.answers import Usage
from tidegate.protocol.attempts import Deltas, Described, Ended, Finished, Life, Opened, UsageSeen
from tidegate.protocol.deltas import Reasoning, Tool
from tidegate.protocol.failures import FailureKind
from tidegate.testing.eventually import eventually


def stream(*steps):
    return Answer(steps)


def read_to_end(connection):
    """Return how many bytes came before the peer closed, in whatever way."""
    read = 0
    with suppress(ConnectionResetError):
        while data := connection.recv(1 << 20):
            read += len(data)
    return read


def kinds(heard):
    return [type(each) for each in heard]


def test_answer_is_told_in_order(worker, lab):
    lab.add(
        stream(
            chat.text("Hel"),
            chat.text("lo"),
            chat.finish(),
            chat.usage(3, 2),
            chat.done(),
            End.KEEPALIVE,
        )
    )

    token = worker.start(lab)

    assert worker.end_of(token) == Ended(1, token)
    heard = worker.heard(token)
    assert [kind for kind in kinds(heard) if kind is not Deltas] == [
        Opened,
        Described,
        Finished,
        UsageSeen,
        Ended,
    ]
    assert worker.text_of(token) == "Hello"
    assert worker.wait_for(token, Finished).seq == 2
    assert worker.wait_for(token, UsageSeen).usage == Usage(input_tokens=3, output_tokens=2)


def test_reasoning_and_tools_are_deltas(worker, lab):
    lab.add(
        stream(
            chat.reasoning("hm"),
            chat.tool(0, id="c1", name="f", arguments="{}"),
            chat.finish("tool_calls"),
            chat.done(),
        )
    )
    token = worker.start(lab)
    worker.end_of(token)

    deltas = [
        delta for each in worker.heard(token) if isinstance(each, Deltas) for delta in each.deltas
    ]
    assert deltas == [Reasoning("hm"), Tool(0, "c1", "f", "{}")]


def test_end_is_told_on_the_terminal_record_and_the_connection_serves_again(worker, lab):
    late_end = stream(chat.text("a"), chat.finish(), chat.done(), gate("late"), End.KEEPALIVE)
    lab.add(late_end, chat.answer("b"))
    token = worker.start(lab)

    worker.end_of(token)
    lab.reached("late")
    lab.open("late")
    eventually(lambda: not worker.providers._attempts)

    assert worker.outcome(lab) == ("b", Ended(1, token + 1))
    assert lab.connections_count == 1


def test_streams_in_a_row_share_a_connection(worker, lab):
    lab.add(*[chat.answer("a") for _ in range(5)])

    for _ in range(5):
        assert worker.outcome(lab)[0] == "a"
        eventually(lambda: not worker.providers._attempts)

    assert lab.connections_count == 1


def test_connection_that_is_not_drained_is_closed(worker, lab):
    endless = blast([raw(b": " + b"x" * 8192 + b"\n\n")], times=100)
    lab.add(stream(chat.text("a"), chat.finish(), chat.done(), endless, End.HOLD))

    assert worker.outcome(lab)[0] == "a"

    assert lab.wait_closed(0).how in ("eof", "reset")


def test_end_without_the_terminal_record_is_clean_behind_evidence(worker, lab):
    lab.add(stream(chat.text("a"), chat.finish(), End.EOF))

    assert worker.outcome(lab) == ("a", Ended(1, 1))


@pytest.mark.parametrize("end", [End.EOF, End.CUT, End.RESET])
def test_body_that_ends_without_evidence_is_truncated(worker, lab, end):
    lab.add(stream(chat.text("a"), gate("read"), end))
    token = worker.start(lab)
    worker.wait_text(token, "a")
    lab.open("read")

    failure = worker.end_of(token).failure

    assert failure.kind is FailureKind.TRUNCATED
    assert failure.retryable


@pytest.mark.parametrize("end", [End.CUT, End.RESET])
def test_body_that_breaks_behind_evidence_is_clean(worker, lab, end):
    lab.add(stream(chat.text("a"), chat.finish(), gate("read"), end))
    token = worker.start(lab)
    worker.wait_for(token, Finished)
    lab.open("read")

    assert worker.end_of(token) == Ended(1, token)


def test_evidence_without_its_blank_line_counts_when_the_body_breaks(worker, lab):
    unfinished = raw(chat.finish().data.rstrip(b"\n"))
    lab.add(stream(chat.text("a"), unfinished, End.CUT))

    assert worker.outcome(lab) == ("a", Ended(1, 1))


@pytest.mark.parametrize("end", [End.CUT, End.RESET])
def test_connection_lost_before_the_headers_is_lost(worker, lab, end):
    lab.add(Answer((end,), headers_with_first_frame=True))

    failure = worker.failure(lab)

    assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "reset")


def test_stream_of_comments_alone_is_life_and_then_empty(worker, lab):
    lab.add(stream(send(": hm\n\n"), gate("read"), End.EOF))
    token = worker.start(lab)

    assert worker.wait_for(token, Life).event is False
    lab.open("read")
    assert worker.end_of(token).failure.kind is FailureKind.EMPTY


def test_first_event_without_content_is_told(worker, lab):
    lab.add(stream(chat.role(), End.HOLD))
    token = worker.start(lab)

    assert worker.wait_for(token, Life).event is True


def test_body_without_a_byte_is_empty(worker, lab):
    lab.add(Answer.whole(b"", "text/event-stream"), Answer.whole(b"", "application/json"))

    assert worker.failure(lab).kind is FailureKind.EMPTY
    assert worker.failure(lab).kind is FailureKind.EMPTY


def test_error_object_in_a_stream_fails_behind_its_text(worker, lab):
    lab.add(stream(chat.text("a"), chat.error("slow down", code="rate_limit_exceeded"), End.HOLD))

    text, end = worker.outcome(lab)

    assert text == "a"
    assert end.failure.kind is FailureKind.RATE_LIMITED
    lab.wait_closed(0)


def test_event_over_the_limit_is_malformed(worker, lab):
    lab.add(stream(raw(b"data: " + b"x" * 5000), End.HOLD))

    failure = worker.failure(lab, event_bytes_max=4096)

    assert failure.kind is FailureKind.MALFORMED
    lab.wait_closed(0)


def test_invalid_utf8_is_malformed(worker, lab):
    lab.add(stream(raw(b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n'), End.HOLD))

    assert worker.failure(lab).kind is FailureKind.MALFORMED


def test_body_in_the_smallest_chunks_comes_whole(worker, lab):
    # Far more of them in one read than aiohttp takes before it stops and asks to be read.
    body = b"".join(each.data for each in (chat.text("x" * 20_000), chat.finish(), chat.done()))
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
    whole = Answer((raw(chunks + b"0\r\n\r\n"), End.KEEPALIVE), headers=headers, verbatim=True)
    lab.add(whole, chat.answer("b"))

    assert worker.outcome(lab) == ("x" * 20_000, Ended(1, 1))
    eventually(lambda: not worker.providers._attempts)
    assert worker.outcome(lab)[0] == "b"
    assert lab.connections_count == 1


def test_several_choices_need_evidence_each(worker, lab):
    half = (chat.text("a"), chat.text("b", choice=1), chat.finish())
    lab.add(stream(*half, chat.done()), stream(*half, chat.finish("length", choice=1), chat.done()))

    assert worker.failure(lab, choices=2).kind is FailureKind.TRUNCATED
    token = worker.start(lab, choices=2)
    assert worker.wait_for(token, Finished).finishes == ("stop", "length")


def test_reading_rests_at_the_limit_and_goes_on_with_credit(worker, lab):
    word = chat.text("x" * 968)
    lab.add(stream(blast([word], times=2000), chat.finish(), chat.done()))
    token = worker.start(lab, limit_bytes=5000)
    worker.wait_for(token, Deltas)
    eventually(lambda: worker.providers._attempts[token]._rest is not None)

    rested = len(worker.text_of(token))
    worker.credit(token, 1 << 30)

    assert worker.end_of(token) == Ended(1, token)
    assert rested < 400 * 968, "rests within a few reads"
    assert worker.text_of(token) == "x" * 968 * 2000


def test_rest_of_one_stream_does_not_hold_up_another(worker, lab):
    lab.add(stream(chat.text("a"), chat.text("b"), chat.finish(), End.EOF), chat.answer("free"))
    resting = worker.start(lab, limit_bytes=1)
    worker.wait_for(resting, Deltas)

    assert worker.outcome(lab)[0] == "free"


def test_evidence_that_came_during_a_rest_outlives_the_connection(worker, lab):
    lab.add(stream(chat.text("a"), gate("rest"), chat.text("b"), chat.finish(), End.CUT))
    token = worker.start(lab, limit_bytes=1)
    worker.wait_for(token, Deltas)
    eventually(lambda: worker.providers._attempts[token]._rest is not None)
    lab.open("rest")
    lab.wait_closed(0)
    worker.credit(token, 1 << 20)

    assert worker.end_of(token) == Ended(1, token)
    assert worker.text_of(token) == "ab"


def test_credit_for_an_attempt_that_is_over_is_ignored(worker, lab):
    lab.add(chat.answer("a"))
    worker.outcome(lab)
    worker.credit(1, 1 << 20)

    lab.add(chat.answer("b"))
    assert worker.outcome(lab)[0] == "b"


def test_host_that_does_not_keep_up_holds_the_reading(worker, lab):
    lab.add(stream(chat.text("a"), gate("more"), chat.text("b"), chat.finish(), chat.done()))
    worker.call(worker.uplink.clear.clear)
    token = worker.start(lab)
    worker.wait_text(token, "a")
    lab.open("more")
    lab.add(chat.answer("c"))
    other = worker.start(lab)
    worker.wait_for(other, Opened)

    assert worker.text_of(token) == "a"
    worker.call(worker.uplink.clear.set)
    worker.end_of(token)
    assert worker.text_of(token) == "ab"


def test_many_streams_at_once(worker, lab):
    gated = stream(chat.text("a"), gate("all"), chat.text("b"), chat.finish(), chat.done())
    lab.add(*[gated] * 200)
    tokens = [worker.start(lab) for _ in range(200)]
    for token in tokens:
        worker.wait_text(token, "a")
    lab.open("all")

    assert all(worker.end_of(token) == Ended(1, token) for token in tokens)
    assert {worker.text_of(token) for token in tokens} == {"ab"}
    assert lab.connections_count == 200


def test_prompt_is_let_go_of_when_the_headers_are_in(worker, lab):
    lab.add(chat.answer("warm"), stream(chat.text("a"), End.HOLD))
    worker.outcome(lab)
    body = b'{"model":"m","messages":["' + b"x" * (8 << 20) + b'"]}'
    tracemalloc.start()
    try:
        token = worker.start(lab, bytes(bytearray(body)))
        worker.wait_text(token, "a")

        # One copy is the lab's, which keeps what it was asked.
        eventually(lambda: tracemalloc.get_traced_memory()[0] < 1.5 * len(body))
    finally:
        tracemalloc.stop()


def test_defect_ends_its_attempt_and_no_other(worker, lab, monkeypatch, caplog):
    from tidegate.actors.provider import actor

    class Broken(actor.BodyDecoder):
        def feed(self, data):
            if b"broken" in data:
                raise RuntimeError(data.decode())
            return super().feed(data)

    monkeypatch.setattr(actor, "BodyDecoder", Broken)
    lab.add(stream(chat.text("fine"), gate("go"), chat.finish(), chat.done()))
    sibling = worker.start(lab)
    worker.wait_text(sibling, "fine")
    lab.add(stream(chat.text("broken"), End.HOLD))

    failure = worker.failure(lab)
    lab.open("go")

    assert (failure.kind, failure.cause) == (FailureKind.INTERNAL, "RuntimeError")
    assert "broken" in failure.detail
    # The log has the place and not the words, which may be an answer's.
    assert "RuntimeError" in caplog.text
    assert "in feed" in caplog.text
    assert "broken" not in caplog.text
    assert worker.end_of(sibling) == Ended(1, sibling)


def test_closing_cancels_what_runs(lab, worker):
    lab.add(stream(chat.text("a"), End.HOLD))
    token = worker.start(lab)
    worker.wait_text(token, "a")
    providers = weakref.ref(worker.providers)
    worker.__exit__()

    assert worker.heard(token)[-1] == Ended(1, token, cancelled=True)
    assert not providers()._attempts
    lab.wait_closed(0)
