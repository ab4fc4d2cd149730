"""What a stream of Messages events becomes, above all where it breaks."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, gate, messages, send
from tidegate.testing.reading import Reading


PROMPT = {"model": "test-model", "max_tokens": 99, "messages": []}
TOOLS = [{"name": "write_file", "input_schema": {"type": "object"}}]
START = messages.start()
UNREADABLE = send("event: content_block_delta\ndata: expected ident\n\n")


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2, settings=tg.Settings(preload=("messages",))) as runtime:
        yield runtime


@pytest.fixture
def asking(request):
    """Make a request to a lab; keywords are fields of its policy."""

    def ask(lab, payload=PROMPT, **policy):
        own = {"x-test": request.node.name}
        endpoint = tg.Endpoint.messages(lab.base, "test-key", headers=own)
        patience = tg.Policy(**{"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy)
        return tg.Request(endpoint, payload, policy=patience)

    return ask


def test_anthropic_stream_refreshes_activity_on_every_event(runtime, asking):
    """Each event is heard of once, by what it becomes; the last one ends the turn."""
    steps = [
        *(START, messages.text_start(0), messages.text("Hello", 0), messages.block_stop(0)),
        *(messages.thinking_start(1), messages.thinking("thinking", 1), messages.block_stop(1)),
        *messages.call(2, "toolu_1", "terminal", "{}"),
        *(messages.stop_reason("end_turn"), messages.stop()),
    ]
    with Lab([Answer(steps)]) as lab:
        turn = runtime.start(asking(lab))
        reading = Reading(turn)
        reading.to_end()

        assert [kind for kind in reading.kinds if kind != "UsageReported"] == [
            *("AttemptStarted", "TextDelta", "ReasoningDelta"),
            *("ToolCallDelta", "ToolCallDelta", "TurnCompleted"),
        ]
        assert turn.result().native()["stop_reason"] == "end_turn"
        assert len(lab.requests) == 1


def test_anthropic_stream_parser_valueerror_retries_before_delivery(runtime, asking):
    with Lab([Answer([START, UNREADABLE]), messages.answer("recovered")]) as lab:
        answer = runtime.run(asking(lab, retries=1))

        assert (answer.text, len(lab.requests)) == ("recovered", 2)
        assert answer.attempts[0].failure.kind is tg.FailureKind.MALFORMED


def test_anthropic_malformed_tool_json_retries_with_buffered_tool_input(runtime, asking):
    text = messages.words("I will write it.")
    broken = [*messages.call(1, "toolu_1", "write_file", '{"path": x}')]
    whole = [*messages.call(1, "toolu_2", "write_file", '{"path": "x"}')]
    end = [messages.stop_reason("tool_use"), messages.stop()]
    with Lab(
        [Answer([START, *text, gate("taken"), *broken, *end]), Answer([START, *text, *whole, *end])]
    ) as lab:
        turn = runtime.start(asking(lab, {**PROMPT, "tools": TOOLS}, retries=1))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        lab.open("taken")
        reading.to_end()
        answer = turn.result()

        assert [call.parsed() for call in answer.tool_calls] == [{"path": "x"}]
        asked = [each.json() for each in lab.requests]
        assert [each["stream"] for each in asked] == [True, True]
        eager = [[tool.get("eager_input_streaming") for tool in each["tools"]] for each in asked]
        assert eager == [[None], [False]]


def test_anthropic_partial_tool_names_do_not_survive_into_next_attempt(runtime, asking):
    first = [START, messages.tool_start(0, "toolu_1", "write_file"), gate("begun"), UNREADABLE]
    second = [START, messages.text_start(), messages.text("fresh text"), gate("taken"), End.CUT]
    with Lab([Answer(first), Answer(second)]) as lab:
        turn = runtime.start(asking(lab, retries=1))
        reading = Reading(turn)
        reading.until(tg.ToolCallDelta)
        lab.open("begun")
        reading.until(tg.TextDelta)
        lab.open("taken")
        reading.to_end()
        answer = turn.result()

        assert (len(lab.requests), answer.partial) == (2, True)
        assert answer.native()["content"] == [{"type": "text", "text": "fresh text"}]
        told = answer.display_text + "".join(each.text for each in reading.all(tg.Notice))
        assert "write_file" not in told


def test_generic_anthropic_valueerror_still_propagates_without_stream_retry(runtime, asking):
    refused = messages.error_answer(400, "invalid_request_error", "invalid request shape")
    with Lab([refused]) as lab:
        with pytest.raises(tg.BadRequest, match="invalid request shape"):
            runtime.run(asking(lab, retries=1))

        assert len(lab.requests) == 1


def test_anthropic_eventless_sdk_assertion_normalized_to_empty_stream(runtime, asking):
    with Lab([Answer([End.EOF], repeat=True)]) as lab:
        with pytest.raises(tg.EmptyStream):
            runtime.run(asking(lab))

        assert len(lab.requests) == 3
