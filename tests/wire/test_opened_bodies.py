"""Bodies as they come: labelled or not, compressed, cut, too large."""

import zlib

import msgspec
import pytest

from tests.wire.test_transport import page
from tidegate.lab import Answer, End, chat, gate, raw, zipped
from tidegate.protocol.attempts import Ended
from tidegate.protocol.failures import FailureKind


class TestBody:
    def test_page_with_status_200_is_malformed(self, worker, lab):
        lab.add(page())

        failure = worker.failure(lab)

        assert (failure.kind, failure.retryable) == (FailureKind.MALFORMED, False)
        assert failure.raw_text.startswith("<html>")
        assert "text/html" in failure.detail

    def test_endless_page_is_not_read_to_its_end(self, worker, lab):
        headers = {"content-type": "text/html"}
        lab.add(Answer((raw(b"<p>" * 3000), End.HOLD), headers=headers))

        assert len(worker.failure(lab).raw_text) == 4096
        lab.wait_closed(0)

    def test_document_in_place_of_a_stream_is_the_answer(self, worker, lab):
        lab.add(Answer.json(chat.completion("whole", tokens=(1, 1))))

        text, end = worker.outcome(lab)

        assert text == "whole"
        assert end == Ended(1, 1, learned="streaming_ignored")

    def test_document_labelled_as_a_stream_is_the_answer(self, worker, lab):
        body = msgspec.json.encode(chat.completion("whole"))
        lab.add(Answer.whole(b"\n \n" + body, "text/event-stream"))

        assert worker.outcome(lab)[0] == "whole"

    @pytest.mark.parametrize(
        "label", ["application/json", "text/plain", "application/octet-stream"]
    )
    def test_stream_labelled_as_something_else_is_the_answer(self, worker, lab, label):
        steps = chat.answer("str", "eam").steps
        lab.add(Answer(steps, headers={"content-type": label}))

        assert worker.outcome(lab) == ("stream", Ended(1, 1))

    def test_stream_in_place_of_a_document_is_the_answer(self, worker, lab):
        lab.add(chat.answer("stream"))

        assert worker.outcome(lab, stream=False) == ("stream", Ended(1, 1))

    def test_beginning_may_come_byte_by_byte(self, worker, lab):
        body = b"".join(step.data for step in chat.answer("ab").steps[:-1])
        lab.add(Answer((raw(body, piece=1),), headers={}))

        assert worker.outcome(lab)[0] == "ab"

    def test_error_document_with_status_200_fails(self, worker, lab):
        error = {"error": {"message": "too many", "code": "rate_limit_exceeded"}}
        lab.add(Answer.json(error))

        end = worker.outcome(lab)[1]

        assert end.failure.kind is FailureKind.RATE_LIMITED
        assert end.learned == ""

    def test_document_that_is_cut_is_no_answer(self, worker, lab):
        body = msgspec.json.encode(chat.completion("whole"))
        headers = {"content-type": "application/json"}
        lab.add(Answer((raw(body[:-20]), End.CUT), headers=headers))

        text, end = worker.outcome(lab)

        assert text == ""
        assert (end.failure.kind, end.failure.status) == (FailureKind.TRUNCATED, None)
        assert end.failure.detail == "the connection ended in the middle of the answer"

    def test_document_over_the_limit_is_malformed(self, worker, lab):
        lab.add(Answer.json(chat.completion("x" * 5000)))

        failure = worker.failure(lab, event_bytes_max=4096)

        assert (failure.kind, failure.reason) == (FailureKind.MALFORMED, "event_bytes_max")

    def test_gzipped_stream_is_read_as_it_comes(self, worker, lab):
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        text, rest = zipped(chat.text("a").data), (chat.finish().data, chat.done().data)
        lab.add(Answer((text, gate("more"), *map(zipped, rest)), headers=headers))
        token = worker.start(lab)
        worker.wait_text(token, "a")
        lab.open("more")

        assert worker.end_of(token) == Ended(1, token)

    @pytest.mark.parametrize("wbits", [15, -15, 31])
    @pytest.mark.parametrize("encoding", ["deflate", "gzip"])
    def test_whole_body_may_be_compressed(self, worker, lab, encoding, wbits):
        if encoding == "gzip" and wbits == -15:
            wbits = 31
        packed = zlib.compress(msgspec.json.encode(chat.completion("x" * 700_000)), wbits=wbits)
        lab.add(Answer.whole(packed, "application/json", headers={"content-encoding": encoding}))

        assert worker.outcome(lab)[0] == "x" * 700_000

    def test_damaged_compression_is_malformed(self, worker, lab):
        lab.add(
            Answer.whole(
                b"no gzip at all", "text/event-stream", headers={"content-encoding": "gzip"}
            )
        )

        failure = worker.failure(lab)

        assert (failure.kind, failure.reason) == (FailureKind.MALFORMED, "encoding")

    def test_compression_that_nobody_knows_is_malformed(self, worker, lab):
        lab.add(Answer.whole(b"\x0b\x01", "text/event-stream", headers={"content-encoding": "br"}))

        failure = worker.failure(lab)

        assert (failure.kind, failure.reason) == (FailureKind.MALFORMED, "encoding")
        assert "br" in failure.detail
