"""Events of the Responses wire: the official SDK takes them for a provider's own."""

import json

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tidegate.lab import Lab, responses


EVENT = TypeAdapter(ResponseStreamEvent)
STEPS = [
    responses.created(),
    responses.added(responses.thought()),
    responses.summary("hm"),
    responses.reasoning("hm"),
    responses.item_done(responses.thought("hm")),
    responses.added(responses.message()),
    responses.text("hé"),
    responses.refusal("no", part=1),
    responses.item_done(responses.said("hé", phase="commentary")),
    responses.added(responses.call()),
    responses.arguments("{}"),
    responses.arguments_done("{}"),
    responses.item_done(responses.call(arguments="{}")),
    responses.completed(responses.said("hé"), usage=responses.usage(3, 4, 1, 2)),
    responses.incomplete(usage=responses.usage(3, 4)),
    responses.failed("sorry"),
    responses.error("sorry", code="server_error", param=None),
]


def payload_of(step):
    name, _, data = step.data.decode().partition("\ndata: ")
    payload = json.loads(data)
    assert name == f"event: {payload['type']}"
    return payload


@pytest.mark.parametrize("step", STEPS)
def test_event_is_one_of_the_wires(step):
    payload = payload_of(step)

    assert EVENT.validate_python({"sequence_number": 0, **payload}).type == payload["type"]


def test_document_is_a_response():
    document = responses.response(responses.said("hé"), usage=responses.usage(3, 4))

    assert Response.model_validate(document, strict=True).output_text == "hé"


def test_item_that_is_null_is_written_as_such():
    assert payload_of(responses.added(None, 3))["item"] is None


def test_answer_is_read_by_the_sdk():
    with (
        Lab([responses.answer("hel", "lo")]) as lab,
        openai.OpenAI(base_url=lab.url, api_key="none", max_retries=0) as client,
    ):
        events = list(client.responses.create(model="lab", input="go", stream=True))

    texts = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert texts == ["hel", "lo"]
    assert events[-1].response.output_text == "hello"
