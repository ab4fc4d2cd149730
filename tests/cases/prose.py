"""What the cases say in sentences, each with the check that it stands for.

A sentence that is not here word for word is as unknown as a key.
"""

from tests.cases import downstream, notes
from tests.cases.stage import answers_of
from tidegate.lab import End
from tidegate.testing.eventually import eventually


LEFT = ("eof", "reset")
PATIENCE = 10


class UnknownWords(AssertionError):
    """A sentence, or a key with one, that nobody checks."""


def holds(key, words, play):
    """Check a sentence.

    Raises:
        AssertionError: it does not hold, or it is unknown.
    """
    check = SENTENCES.get(key, {}).get(words)
    if check is None:
        raise UnknownWords(f"{key}: {words!r}")
    check(play)


def nothing_is_left(play):
    for each in (play, *play.variants.values()):
        if each.lab is not None:
            eventually(lambda played=each: not _unfinished(played))
    play.stage.idle()


def _unfinished(play):
    """Return the open connections; where the script keeps them alive, they are spare ones."""
    ends = [answer.end for answer in answers_of(play.case)]
    if End.KEEPALIVE in ends:
        return []
    return [request for request in play.lab.requests if request.closed is None]


def _client_closed(play):
    closed = play.lab.wait_closed(0)
    assert closed.how in LEFT
    [call] = play.calls
    assert closed.at_s - call.began_s <= 1.5 * PATIENCE
    play.stage.idle()


def _released(play):
    [call] = play.calls
    assert play.facts["released_by"] == call.failure
    assert play.facts["taken_before"] == '{"text":"ab'
    play.stage.idle()


def _closes_in_time(count, limit_s):
    def check(play):
        assert len(play.facts["closed"]) == count
        assert all(closed.how in LEFT for closed, _ in play.facts["closed"])
        assert all(after_s <= limit_s * PATIENCE for _, after_s in play.facts["closed"])
        play.stage.idle()

    return check


def _never_said(*phrases):
    def check(play):
        said = play.stage.log() + "".join(play.facts.get("loop_errors", ()))
        said += "".join(call.shown for call in play.calls)
        assert not [phrase for phrase in phrases if phrase in said]

    return check


def _never_shown(phrase):
    def check(play):
        _never_said(phrase)(play)
        for call in play.calls:
            assert phrase not in call.visible
            assert phrase not in str(call.answer.native())

    return check


def _one_request(play):
    assert len(play.lab.requests) == 1


def _neither_retried_nor_truncated(play):
    _one_request(play)
    [call] = play.calls
    assert [each.failure for each in call.answer.attempts] == [None]


def _cut_call_is_raw(play):
    [call] = play.calls
    assert call.answer.tool_calls == ()
    assert call.answer.native()["choices"][0]["message"].get("tool_calls") is None
    [lost] = call.answer.incomplete_tool_calls
    assert lost.arguments == '{"path":"a.txt","body":"half of'


def _not_callable(identity):
    def check(play):
        [call] = play.calls
        assert identity not in [each.id for each in call.answer.tool_calls]

    return check


def _server_tool_is_not_the_callers(play):
    [call] = play.calls
    assert call.answer.tool_calls == call.answer.incomplete_tool_calls == ()
    assert '"type":"tool_call.delta"' not in call.shown


def _not_doubled(play):
    [call] = play.calls
    assert call.visible == call.answer.text == "still works"
    assert str(call.answer.native()["output"]).count("works") == 1


def _ended_before_the_next_began(play):
    first, second = play.calls
    assert first.events[-1].at_s <= second.events[0].at_s


def _second_request_has_no_cut_call(play):
    _, request = play.lab.requests
    messages = request.json()["messages"]
    assert "toolu_1" not in request.body.decode()
    assert "tool_result" not in request.body.decode()
    assert [each["role"] for each in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == [{"type": "text", "text": "I will "}]


def _all_again(play):
    assert len(play.calls) == 4
    for call in play.calls:
        assert (call.answer.text, call.answer.finish) == ("again", "stop")
        assert len(call.answer.attempts) == 1
    # The two calls one after the other had one connection: the first gave it back.
    assert len({request.connection for request in play.lab.requests[:2]}) == 1


def _nobody_outlived_the_host(play):
    assert play.facts["workers"]
    assert play.facts["workers_left"] == []
    assert play.facts["closed"].how in LEFT
    assert play.facts["closed_after_s"] <= 3.0 * PATIENCE


def _limits_are_the_runtimes(play):
    # A configuration of botocore's is here the policy: a limit it does not name stays as it was.
    defaults, empty, connect, read = play.facts["read_limits_s"]
    assert defaults == empty == connect >= 120
    assert read == 900
    assert play.facts["requests"] == play.facts["reported"] == [1] * 4


SENTENCES = {
    "closed": {
        "every response closed on every path; no connection checked out, no task or thread "
        "left": nothing_is_left,
        "client closes within 1500 ms": _client_closed,
        "socket closed by the client; no task, thread or timer left": _client_closed,
        "the consumer task is released with the same error and ends": _released,
        "server sees 20 closes within 1500 ms": _closes_in_time(20, 1.5),
        "server sees close within 1000 ms of the outer close": _closes_in_time(1, 1.0),
        "upstream socket closed, not pooled; actor idle; no further bytes read": (
            downstream.nothing_pooled
        ),
    },
    "must_not": {
        "U+FFFD anywhere": _never_shown("\ufffd"),
        "execute write, or repair the JSON and execute it": _cut_call_is_raw,
        "a second upstream request": _one_request,
        "retry, or report truncated": _neither_retried_nor_truncated,
        "hand srvtoolu_1 to the caller for execution": _server_tool_is_not_the_callers,
        "text doubled from deltas and final output": _not_doubled,
        "execute tu1": _not_callable("tu1"),
        "Once upon a Once upon a time.": _never_shown("Once upon a Once upon a time."),
        "Attempted to exit cancel scope in a different task; aclose(): asynchronous generator "
        "is already running": _never_said(
            "Attempted to exit cancel scope in a different task",
            "aclose(): asynchronous generator is already running",
        ),
        "RuntimeError; asyncgen finalizer hook being needed for the close": _never_said(
            "RuntimeError"
        ),
        "RuntimeError: Event loop is closed; bound to a different event loop": _never_said(
            "Event loop is closed", "bound to a different event loop"
        ),
    },
    "order": {
        "turn 1's terminal event comes before turn 2's first event": _ended_before_the_next_began,
    },
    "turn2_request": {
        "holds no toolu_1 at all, neither tool_use nor tool_result; the partial text may be "
        "kept; roles still alternate": _second_request_has_no_cut_call,
    },
    "expect": {
        "all calls return text 'again', finish stop, attempts 1": _all_again,
        "no former worker alive after 3000 ms; the scripted upstream saw its connection close "
        "within 3000 ms": _nobody_outlived_the_host,
        "read_timeout is the runtime's own value in the first three and 900 in the fourth; "
        "botocore's own retries are off (or counted in attempts) in all four": (
            _limits_are_the_runtimes
        ),
    },
    "notes": notes.NOTES,
    **downstream.SENTENCES,
}
