"""The Responses wire streams, retries and stops like any other."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, gate, pace, responses
from tidegate.testing.reading import Reading


PROMPT = {"model": "test-model", "input": "Hello"}


@pytest.fixture
def asking(request):
    """Make a request to a lab; keywords are fields of its policy."""
    own = {"x-test": request.node.name}

    def ask(lab, **policy):
        endpoint = tg.Endpoint.responses(lab.url, "test-key", headers=own)
        patience = tg.Policy(**{"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy)
        return tg.Request(endpoint, PROMPT, policy=patience)

    return ask


def test_codex_text_delta_fires_callback(runtime, asking):
    with Lab([responses.answer("Hello", " from", " Codex")]) as lab:
        heard = []
        answer = runtime.run(asking(lab), heard.append)

        texts = [each.text for each in heard if isinstance(each, tg.TextDelta)]
        assert texts == ["Hello", " from", " Codex"]
        assert answer.text == "Hello from Codex"


def test_codex_remote_protocol_error_retries_then_raises(runtime, asking):
    """The budget is the wire's own: nobody has said how often to try."""
    with Lab([Answer([End.RESET], headers_with_first_frame=True, repeat=True)]) as lab:
        with pytest.raises(tg.ConnectionLost) as raised:
            runtime.run(asking(lab))

        assert isinstance(raised.value, ConnectionError)
        assert len(lab.requests) == 2


def test_codex_remote_protocol_error_in_the_body_retries_too(runtime, asking):
    with Lab([Answer([responses.created(), End.CUT]), responses.answer("whole")]) as lab:
        answer = runtime.run(asking(lab))

        assert answer.text == "whole"
        assert answer.attempts[0].failure.kind is tg.FailureKind.TRUNCATED


def test_codex_create_stream_fallback_refreshes_activity_on_every_event(runtime, asking):
    """All of them together take longer than the silence that is allowed, none of them alone."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    kinds = [
        responses.summary("Hm", 0),
        responses.item_done(search, 1),
        responses.text("a", 2),
        responses.refusal("b", 2, part=1),
        responses.added(responses.call(), 3),
        responses.arguments("{}", 3),
        responses.item_done(responses.call(arguments="{}"), 3),
        responses.completed(),
    ]
    with Lab([Answer([pace(kinds, 0.3), End.KEEPALIVE])]) as lab:
        answer = runtime.run(asking(lab, stale_after_s=1.5, retries=0))

        assert (answer.text, answer.reasoning, answer.refusal) == ("a", "Hm", "b")
        assert len(answer.attempts) == len(lab.requests) == 1


def test_codex_stream_claims_writer_and_stops_when_superseded(runtime, asking, worker_stopped):
    """The newer attempt brings nothing, so that the first one stays the answer."""
    tail = responses.text("-stale-tail"), responses.completed()
    old = Answer([responses.text("first"), gate("superseded"), *tail, gate("sent"), End.HOLD])
    refused = chat.error_answer(400, "no")
    new = Answer(
        [gate("tail sent"), *refused.steps],
        status=400,
        headers=refused.headers,
        headers_with_first_frame=True,
    )
    with Lab([old, new]) as lab:
        patience = {"stale_after_s": 0.5, "first_event_timeout_s": 30, "kill_grace_s": 30}
        turn = runtime.start(asking(lab, after_visible_text="restart", **patience))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        resume = worker_stopped(runtime, turn)
        lab.reached("tail sent")

        lab.open("superseded")
        lab.reached("sent")
        resume()
        lab.wait_closed(0)
        lab.open("tail sent")

        reading.to_end()
        assert reading.texts == ["first"]
        assert turn.result().text == "first"


def test_codex_interrupt_closes_stream_without_draining_provider(runtime, asking):
    """What is never read cannot be drained: the rest is held back until the socket has closed."""
    rest = [responses.text(f" word {number}") for number in range(50)]
    steps = [responses.text("first"), gate("closed"), *rest, responses.completed()]
    with Lab([Answer(steps)]) as lab:
        turn = runtime.start(asking(lab))
        heard = []
        for event in turn:
            heard.append(event)
            if isinstance(event, tg.TextDelta):
                assert turn.interrupt("enough")

        assert lab.wait_closed(0).how in ("eof", "reset")
        lab.open("closed")
        assert [each.text for each in heard if isinstance(each, tg.TextDelta)] == ["first"]
        assert isinstance(heard[-1], tg.TurnInterrupted)
        with pytest.raises(tg.Interrupted, match="enough"):
            turn.result()
        assert len(lab.requests) == 1
