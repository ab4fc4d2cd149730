"""The frames of the lab's converse wire are what boto3 reads."""

from contextlib import closing

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EventStreamError

from tidegate.lab import Answer, converse


MESSAGES = [{"role": "user", "content": [{"text": "Hello"}]}]


@pytest.fixture
def client(lab):
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=lab.base,
        aws_access_key_id="AKIDLAB",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    yield client
    client.close()


def events_of(client):
    with closing(client.converse_stream(modelId="m", messages=MESSAGES)["stream"]) as stream:
        return list(stream)


def test_stream_is_read_event_by_event(lab, client):
    steps = [
        converse.reasoning("hm"),
        converse.signature("c2ln"),
        converse.tool("clock", id="t1", block=1),
        converse.arguments("{}", block=1),
    ]
    lab.add(converse.answer("Hello", steps=steps, reason="tool_use"))

    assert events_of(client) == [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hello"}}},
        {
            "contentBlockDelta": {
                "contentBlockIndex": 0,
                "delta": {"reasoningContent": {"text": "hm"}},
            }
        },
        {
            "contentBlockDelta": {
                "contentBlockIndex": 0,
                "delta": {"reasoningContent": {"signature": "c2ln"}},
            }
        },
        {
            "contentBlockStart": {
                "contentBlockIndex": 1,
                "start": {"toolUse": {"toolUseId": "t1", "name": "clock"}},
            }
        },
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
        {
            "metadata": {
                "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
                "metrics": {"latencyMs": 5},
            }
        },
    ]


def test_exception_in_the_stream_is_raised(lab, client):
    lab.add(converse.stream(converse.exception("throttlingException", "slow down")))

    with pytest.raises(EventStreamError, match=r"throttlingException.*slow down"):
        events_of(client)


def test_document_is_a_whole_answer(lab, client):
    lab.add(Answer.json(converse.completion({"text": "Hello"})))
    answer = client.converse(modelId="m", messages=MESSAGES)

    assert answer["output"]["message"]["content"] == [{"text": "Hello"}]
    assert answer["usage"]["totalTokens"] == 5
