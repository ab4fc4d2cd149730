"""Compares what a case showed with its right outcome, field by field; every key is known here."""

import json

import tidegate as tg
from tests.cases import downstream
from tests.cases.prose import holds
from tidegate.protocol.captures import Came, bytes_of, lines_from
from tidegate.testing.eventually import eventually
from tidegate.wire.sse import SseDecoder


PATIENCE = 10  # upper bounds are guards against a hang
KINDS = {
    "protocol": ("malformed",),
    "cancelled": ("interrupted",),
    "truncated": ("truncated", "empty"),
}
ANY_ID = "<any non-empty unique string>"


class UnknownKey(AssertionError):
    """A key that nobody compares."""


def compare(outcome, play):
    """Compare an outcome with a play; what is said of a call must hold for each of its calls.

    Raises:
        AssertionError: a value is another one, or a key is unknown.
    """
    for key, value in outcome.items():
        if key in OF_PLAY:
            OF_PLAY[key](value, play)
        elif key in OF_CALL:
            assert play.calls, f"{key} of no call"
            for call in play.calls:
                OF_CALL[key](value, call, outcome)
        else:
            holds(key, value, play)


def _calls(outcomes, play):
    assert len(outcomes) == len(play.calls)
    for outcome, call in zip(outcomes, play.calls, strict=True):
        for key, value in outcome.items():
            if key not in OF_CALL:
                raise UnknownKey(key)
            OF_CALL[key](value, call, outcome)


def _variants(outcomes, play):
    assert outcomes.keys() == play.variants.keys()
    for name, outcome in outcomes.items():
        compare(outcome, play.variants[name])


def _one_of(outcomes, play):
    faults = []
    for outcome in outcomes:
        try:
            return compare(outcome, play)
        except UnknownKey:
            raise
        except AssertionError as fault:
            faults.append(str(fault))
    raise AssertionError("\n\n".join(faults))


def _server_requests(count, play):
    assert len(play.lab.requests) == count


def _second_request_at_ms(bounds, play):
    [call] = play.calls
    earliest, latest = bounds
    after_ms = (play.lab.requests[1].at_s - call.began_s) * 1000
    assert earliest <= after_ms <= latest * PATIENCE


def _events_decoded(count, play):
    """Count with the runtime's own decoder, in the pieces in which the socket gave them."""
    [call] = play.calls
    whole = f"{call.events[0].turn_id}-*.jsonl"  # named so once the attempt has ended
    [file] = eventually(lambda: [*play.stage.capture.glob(whole)])
    decoder = SseDecoder(1 << 20)
    bodies = [bytes_of(line) for line in lines_from(file.read_bytes()) if isinstance(line, Came)]
    assert sum(len(decoder.feed(body)) for body in bodies) + len(decoder.eof()) == count


def _close_within_ms(limit, play):
    assert 0 <= play.facts["closed_after_s"] * 1000 <= limit * PATIENCE


def _cpu_s_max(limit, play):
    assert play.facts["cpu_s"] <= limit


def _attempts(count, call, _outcome):
    assert len(call.answer.attempts) == count


def _attempt_errors(kinds, call, _outcome):
    fates = [each.failure.kind for each in call.answer.attempts if each.failure]
    assert len(fates) == len(kinds)
    assert all(fate in _names(kind) for fate, kind in zip(fates, kinds, strict=True)), fates


def _error(wanted, call, _outcome):
    failure = call.failure
    if wanted is None:
        assert failure is None
        return
    assert failure is not None
    for key, value in wanted.items():
        if key not in ("kind", "retryable", "status", "code", "reason"):
            raise UnknownKey(f"error.{key}")
        if key == "kind":
            assert failure.kind in _names(value), failure
        else:
            assert getattr(failure, key) == value, (key, failure)


def _names(kind):
    return KINDS.get(kind, (kind,))


def _text(text, call, _outcome):
    assert call.answer.text == text
    assert call.visible == text


def _reasoning(text, call, _outcome):
    assert call.answer.reasoning == text


def _finish(finish, call, outcome):
    wanted = "incomplete" if finish is None and outcome.get("partial") else finish
    assert call.finish == wanted


def _raw_finish(finish, call, _outcome):
    assert [each["finish_reason"] for each in call.answer.native()["choices"]] == [finish]


def _role(role, call, _outcome):
    assert [each["message"]["role"] for each in call.answer.native()["choices"]] == [role]


def _partial(partial, call, _outcome):
    assert call.answer.partial is partial


def _usage(wanted, call, _outcome):
    usage = call.answer.usage
    if wanted is None:
        assert usage is None
        return
    assert usage is not None
    figures = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cached_input_tokens,
    }
    if unknown := wanted.keys() - figures:
        raise UnknownKey(f"usage.{unknown}")
    assert {name: figures[name] for name in wanted} == wanted
    assert usage.origin == "reported"


def _usage_note(words, call, _outcome):
    assert words == "input 10 known from message_start; output count not final"
    assert call.answer.usage.input_tokens == 10
    assert call.answer.usage.origin == "estimated"


def _tool_calls(wanted, call, _outcome):
    calls = call.answer.tool_calls
    _same_calls(wanted, calls, lambda each: ("arguments", each.parsed()))


def _incomplete_tool_calls(wanted, call, _outcome):
    calls = call.answer.incomplete_tool_calls
    _same_calls(wanted, calls, lambda each: ("raw", each.arguments))
    assert call.answer.lost_tools == tuple(each.name for each in calls)


def _same_calls(wanted, calls, content_of):
    shown = [dict([("id", each.id), ("name", each.name), content_of(each)]) for each in calls]
    ids = [each.id for each in calls]
    assert all(ids)
    assert len({*ids}) == len(ids)
    assert len(shown) == len(wanted)
    for have, want in zip(shown, wanted, strict=True):
        expected = want | {"id": have["id"]} if want["id"] == ANY_ID else want
        assert json.dumps(have, sort_keys=True) == json.dumps(expected, sort_keys=True)


def _tool_call_events(count, call, _outcome):
    assert sum(isinstance(event, tg.ToolCallDelta) for event in call.events) == count


def _server_tools(wanted, call, _outcome):
    blocks = [each for each in call.answer.native()["content"] if each["type"] == "server_tool_use"]
    shown = [{key: each[key] for key in ("id", "name", "input")} for each in blocks]
    assert shown == wanted


def _citations(count, call, _outcome):
    content = call.answer.native()["content"]
    assert sum(len(block.get("citations") or ()) for block in content) == count


def _error_message_kept(words, call, _outcome):
    assert words in call.answer.attempts[0].failure.detail


def _within_ms(limit, call, _outcome):
    assert 0 <= (call.ended_s - call.began_s) * 1000 <= limit * PATIENCE


def _events_must_include(words, call, _outcome):
    """Only what was taken needs a restart that is announced."""
    assert words == (
        "an explicit restart event which tells consumers to discard attempt 1, each delta "
        "labelled with its attempt"
    )
    taken = {event.attempt for event in call.events if isinstance(event, tg.TextDelta)}
    told = {event.attempt for event in call.events if isinstance(event, tg.AttemptSuperseded)}
    assert told == taken - {2}


OF_PLAY = {
    "calls": _calls,
    "variants": _variants,
    "one_of": _one_of,
    "server_requests": _server_requests,
    "second_request_at_ms": _second_request_at_ms,
    "events_decoded": _events_decoded,
    "upstream_sees_close_within_ms": _close_within_ms,
    "cpu_s_max": _cpu_s_max,
    **downstream.FIELDS,
}
OF_CALL = {
    "attempts": _attempts,
    "attempt_errors": _attempt_errors,
    "citations": _citations,
    "error": _error,
    "error_message_kept": _error_message_kept,
    "events_must_include": _events_must_include,
    "finish": _finish,
    "incomplete_tool_calls": _incomplete_tool_calls,
    "partial": _partial,
    "raw_finish": _raw_finish,
    "reasoning": _reasoning,
    "role": _role,
    "server_tools": _server_tools,
    "text": _text,
    "tool_call_events": _tool_call_events,
    "tool_calls": _tool_calls,
    "usage": _usage,
    "usage_note": _usage_note,
    "within_ms": _within_ms,
}
