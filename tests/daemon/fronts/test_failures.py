"""Turns that fail, played by the lab to a real runtime: what official clients make of them."""

import openai
import pytest

import tidegate as tg
from tests.daemon.fronts import sdks
from tests.daemon.fronts.playing import play, render
from tidegate.daemon.fronts import body_of, error_of
from tidegate.lab import Answer, End, chat, messages, responses


CALLED = {
    "chat": [chat.tool(id="a", name="read", arguments=""), chat.tool(arguments='{"path":')],
    "responses": [
        responses.created(),
        responses.added(responses.call("a", "read")),
        responses.arguments('{"path":'),
    ],
    "messages": [
        messages.start(),
        messages.tool_start(0, "a", "read"),
        messages.tool_input('{"path":', 0),
    ],
}
"""A call of which a part is missing."""

SAID = {
    "chat": [chat.text("Once")],
    "responses": [
        responses.created(),
        responses.added(responses.message()),
        responses.text("Once"),
    ],
    "messages": [messages.start(), messages.text_start(), messages.text("Once")],
}
WHOLE = {
    "chat": chat.answer("All of it."),
    "responses": responses.answer("All of it."),
    "messages": messages.answer("All of it."),
}
AT_THE_LIMIT = {
    "chat": [chat.finish("length"), chat.done()],
    "responses": [
        responses.event(
            "incomplete",
            response={
                "id": "resp_lab",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        )
    ],
    "messages": [messages.stop_reason("max_tokens"), messages.stop()],
}
END_MARKS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete")
LOST = "read"


@pytest.fixture(params=SAID)
def api(request):
    return request.param


def words_of(events):
    """Return all text that a client hears, by any API."""
    found = []
    for each in events:
        delta = each.get("delta")
        if "choices" in each:
            found += [choice["delta"].get("content") or "" for choice in each["choices"]]
        elif isinstance(delta, str) and each["type"] == "response.output_text.delta":
            found.append(delta)
        elif isinstance(delta, dict):
            found.append(delta.get("text", ""))
    return "".join(found)


def test_stream_that_is_cut_has_no_end_mark(runtime, api):
    items = play(runtime, api, [Answer([*SAID[api], End.CUT])])

    body = render(api, items)

    assert not [mark for mark in END_MARKS if mark in body]
    events, error = sdks.heard(api, body)
    assert words_of(events) == "Once"
    assert error is not None
    assert items[-1].error.detail in str(error)


def test_attempt_that_was_not_seen_leaves_no_trace(runtime, api):
    cut = Answer([*SAID[api][:-1], End.CUT])
    items = play(runtime, api, [cut, WHOLE[api]], retries=1)
    assert any(isinstance(item, tg.RetryScheduled) for item in items)

    body = render(api, items)

    sdks.judge(api, body)
    events, error = sdks.heard(api, body)
    assert (words_of(events), error) == ("All of it.", None)


def test_lost_call_is_told_in_text_before_the_error(runtime, api):
    items = play(runtime, api, [Answer([*CALLED[api], End.CUT])])

    body = render(api, items)

    assert not [mark for mark in END_MARKS if mark in body]
    events, error = sdks.heard(api, body)
    assert LOST in words_of(events)
    assert error is not None


def test_lost_call_of_a_complete_answer_is_told_in_text(runtime, api):
    script = Answer([*CALLED[api], *AT_THE_LIMIT[api], End.KEEPALIVE])
    items = play(runtime, api, [script])

    body = render(api, items)

    sdks.judge(api, body)
    events, error = sdks.heard(api, body)
    assert LOST in words_of(events)
    assert error is None
    assert LOST in str(body_of(api, items[-1], notices=True))
    sdks.WHOLE[api].model_validate(body_of(api, items[-1], notices=True), strict=True)
    assert "Lost" not in str(body_of(api, items[-1]))


def test_refusal_before_the_stream_keeps_its_status_and_its_wait(runtime):
    refusal = chat.error_answer(429, "slow down", code="rate_limit_exceeded")
    script = Answer(refusal.steps, status=429, headers={**refusal.headers, "retry-after": "7"})
    terminal = play(runtime, "chat", [script])[-1]

    error = sdks.refused("chat", error_of("chat", terminal.error))

    assert isinstance(error, openai.RateLimitError)
    assert error.response.headers["retry-after"] == "7"
    assert error.code == "rate_limit_exceeded"
    assert "slow down" in error.message


def test_interrupt_ends_a_stream_with_an_error(runtime, api):
    script = Answer([*SAID[api], End.HOLD])
    items = play(runtime, api, [script], interrupt_after="Once")
    assert isinstance(items[-1], tg.TurnInterrupted)

    body = render(api, items)

    assert not [mark for mark in END_MARKS if mark in body]
    assert "enough" in str(sdks.heard(api, body)[1])
