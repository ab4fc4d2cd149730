"""What happens when a provider answers with an error, or with something that is no answer."""

import gzip
import zlib
from functools import partial

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat, frame, raw, zipped


pytestmark = pytest.mark.usefixtures("nothing_left")

HTML = b"<html><body><h1>It works!</h1></body></html>"
RETRIED, ONCE = 2, 1


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


def fails(runtime, lab, ask, **policy):
    """Run a turn that must fail, and return its error."""
    with pytest.raises(tg.TurnError) as raised:
        runtime.run(ask(lab, **({"retries": 1} | policy)))
    return raised.value


@pytest.mark.parametrize("form", ["json", "html", "empty"])
@pytest.mark.parametrize(
    ("status", "error", "attempts"),
    [
        (400, tg.BadRequest, ONCE),
        (401, tg.AuthRejected, ONCE),
        (402, tg.QuotaExhausted, ONCE),
        (403, tg.AuthRejected, ONCE),
        (404, tg.BadRequest, ONCE),
        (408, tg.ServerFault, RETRIED),
        (409, tg.ServerFault, RETRIED),
        (413, tg.BadRequest, ONCE),
        (422, tg.BadRequest, ONCE),
        (429, tg.RateLimited, RETRIED),
        (500, tg.ServerFault, RETRIED),
        (501, tg.ServerFault, ONCE),
        (502, tg.ServerFault, RETRIED),
        (503, tg.ServerFault, RETRIED),
        (504, tg.ServerFault, RETRIED),
        (520, tg.ServerFault, RETRIED),
        (529, tg.Overloaded, RETRIED),
    ],
)
def test_error_status(runtime, ask, *, status, error, attempts, form):
    answers = {
        "json": chat.error_answer(status, "the reason"),
        "html": Answer.whole(b"<html>the reason</html>", "text/html", status),
        "empty": Answer.whole(b"", "text/plain", status),
    }
    with Lab([answers[form]] * attempts) as lab:
        raised = fails(runtime, lab, ask)

        failure = raised.failure
        assert type(raised) is error
        assert failure.status == status
        assert failure.retryable == (attempts == RETRIED)
        assert (form == "empty") or "the reason" in failure.detail
        assert len(lab.requests) == len(raised.answer.attempts) == attempts


def test_unknown_model(runtime, ask):
    unknown = chat.error_answer(404, "The model `x` does not exist", code="model_not_found")
    with Lab([unknown]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.BadRequest
        assert (raised.failure.status, raised.failure.code) == (404, "model_not_found")
        assert "The model `x` does not exist" in str(raised)


def test_wrong_path(runtime, ask):
    """A base URL without its ``/v1`` is the usual mistake: the server's words, and the address."""

    def route(request):
        known = request.path == "/v1/chat/completions"
        return None if known else Answer.json({"detail": "Not Found"}, 404)

    with Lab([], route=route) as lab:
        raised = fails(runtime, lab.base, ask)

        assert type(raised) is tg.BadRequest
        assert raised.failure.status == 404
        assert raised.failure.detail == f"Not Found (POST {lab.base}/chat/completions)"


def test_wrong_path_of_a_server_without_words(runtime, ask):
    with Lab([Answer.whole(b"", "text/plain", 405)]) as lab:
        assert fails(runtime, lab.base, ask).failure.detail == f"POST {lab.base}/chat/completions"


def test_missing_key(runtime, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for endpoint in (tg.Endpoint.chat(), tg.Endpoint.chat("https://x.example", "env:NO_SUCH_KEY")):
        with pytest.raises(tg.AuthRejected) as raised:
            runtime.run(tg.Request(endpoint, {"model": "m", "messages": []}))

        failure = raised.value.failure
        assert (failure.kind, failure.reason) == ("auth", "missing_key")
        assert ("OPENAI_API_KEY" in failure.detail) or ("NO_SUCH_KEY" in failure.detail)
        assert raised.value.answer.attempts == ()


def test_key_is_in_no_text(runtime, ask):
    echo = chat.error_answer(401, "Incorrect API key provided: sk-very-secret-key")
    with Lab([echo]) as lab:
        request = ask(lab, options={"api_key": "sk-very-secret-key"})
        with pytest.raises(tg.AuthRejected) as raised:
            runtime.run(request)

        assert lab.requests[0].headers["authorization"] == "Bearer sk-very-secret-key"
        assert "Incorrect API key" in str(raised.value)
        assert "very-secret" not in f"{raised.value} {raised.value.answer} {request!r}"


def test_rate_limit_longer_than_the_cap(runtime, ask):
    slow_down = Answer.json({"error": {"message": "later"}}, 429, {"retry-after": "3600"})
    with Lab([slow_down]) as lab:
        raised = fails(runtime, lab, ask, retry_after_cap_s=60)

        assert raised.retry_after_s == 3600
        assert len(lab.requests) == 1


def test_html_page_with_status_200(runtime, ask):
    with Lab([Answer.whole(HTML, "text/html")]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.MalformedStream
        assert "It works!" in raised.raw_text
        assert len(lab.requests) == 1


def test_html_page_inside_an_event_stream(runtime, ask):
    with Lab([Answer([raw(b"data: " + HTML + b"\n\n"), End.HOLD])]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.MalformedStream
        assert "It works!" in raised.raw_text
        assert lab.wait_closed(0).how in ("eof", "reset")


ZIPPED = {"content-type": "text/event-stream", "content-encoding": "gzip"}


def test_stream_that_is_compressed_although_asked_not_to(runtime, ask):
    steps = [zipped(step.data) for step in chat.answer("squee", "zed").steps[:-1]]
    with Lab([Answer([*steps, End.EOF], headers=ZIPPED)]) as lab:
        assert runtime.run(ask(lab)).text == "squeezed"
        assert lab.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("encoding", "press"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_error_that_is_compressed(runtime, ask, encoding, press):
    body = press(b'{"error": {"message": "pressed", "code": "model_not_found"}}')
    answer = Answer.whole(body, "application/json", 404, {"content-encoding": encoding})
    with Lab([answer]) as lab:
        raised = fails(runtime, lab, ask)

        assert (raised.failure.code, raised.failure.detail) == ("model_not_found", "pressed")


def test_gzip_that_is_none(runtime, ask):
    with Lab([Answer([raw(b"data: plain\n\n"), End.EOF], headers=ZIPPED)]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.MalformedStream
        assert raised.failure.reason == "encoding"


@pytest.mark.parametrize("piece", [None, 1000], ids=["at once", "in pieces"])
def test_frame_over_the_limit(runtime, ask, piece):
    large = chat.text("x" * 100_000)
    with Lab([Answer([raw(large.data, piece=piece), End.HOLD])]) as lab:
        raised = fails(runtime, lab, ask, event_bytes_max=50_000)

        assert type(raised) is tg.MalformedStream
        assert "50000" in raised.failure.detail.replace(",", "")
        assert len(raised.raw_text) <= 4096
        assert lab.wait_closed(0).how in ("eof", "reset")
        assert len(lab.requests) == 1


def test_frame_that_never_ends(runtime, ask):
    endless = [raw(b"data: "), *[raw(b"x" * 10_000)] * 20, End.HOLD]
    with Lab([Answer(endless)]) as lab:
        raised = fails(runtime, lab, ask, event_bytes_max=50_000)

        assert type(raised) is tg.MalformedStream
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_json_body_over_the_limit(runtime, ask):
    with Lab([Answer.json(chat.completion("x" * 100_000))]) as lab:
        raised = fails(runtime, lab, ask, event_bytes_max=50_000)

        assert type(raised) is tg.MalformedStream


def test_frame_just_within_the_limit(runtime, ask):
    large = chat.answer("x" * 49_000)
    with Lab([large]) as lab:
        assert len(runtime.run(ask(lab, event_bytes_max=50_000)).text) == 49_000


def test_bytes_that_are_no_utf8(runtime, ask):
    broken = chat.text("caf@").data.replace(b"@", b"\xe9")
    with Lab([Answer([raw(broken), *chat.answer("never").steps])]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.MalformedStream
        assert "caf\N{REPLACEMENT CHARACTER}" in raised.raw_text
        assert len(lab.requests) == 1


def test_character_that_is_cut_between_two_reads(runtime, ask):
    whole = chat.answer("na", "\N{LATIN SMALL LETTER I WITH DIAERESIS}ve", " \N{PARTY POPPER}")
    in_bytes = [raw(step.data, piece=1) for step in whole.steps[:-1]]
    with Lab([Answer([*in_bytes, End.EOF])]) as lab:
        expected = "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve \N{PARTY POPPER}"
        assert runtime.run(ask(lab)).text == expected


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([frame([1, 2, 3])], id="a list"),
        pytest.param([frame("text")], id="text"),
        pytest.param([raw(b"data: {\n\n")], id="half an object"),
    ],
)
def test_frame_that_is_no_chunk(runtime, ask, steps):
    with Lab([Answer([*steps, End.HOLD])]) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.MalformedStream
        assert lab.wait_closed(0).how in ("eof", "reset")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b": ping\n\n: ping\n\n", id="comments"),
    ],
)
def test_stream_without_anything_in_it(runtime, ask, body):
    with Lab([Answer([raw(body), End.EOF])] * 2) as lab:
        raised = fails(runtime, lab, ask)

        assert type(raised) is tg.EmptyStream
        assert len(lab.requests) == 2


def test_end_mark_without_anything_before_it(runtime, ask):
    """It says that something was meant to be there: the stream is cut, and not empty."""
    with Lab([Answer([chat.done(), End.EOF])] * 2) as lab:
        assert type(fails(runtime, lab, ask)) is tg.StreamTruncated
