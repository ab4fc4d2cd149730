"""The peers: the SDKs' synchronous iterators, as their documentation has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import anthropic
import boto3
import openai
from botocore.config import Config

from benchmarks.histories import payload, times_to_first
from benchmarks.readers import Readers, read_one
from benchmarks.sides import serve


@lru_cache
def client(url: str) -> openai.OpenAI:
    """Return the one client for a base URL."""
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


def texts(url: str, asked: dict[str, Any] | None = None) -> Iterator[str]:
    """Ask for a stream and yield its pieces of text."""
    asked = asked or {"model": "lab", "messages": [{"role": "user", "content": "go"}]}
    stream = client(url).chat.completions.create(**asked, stream=True)
    for event in stream:
        if event.choices and (text := event.choices[0].delta.content):
            yield text


def responses_texts(url: str, asked: dict[str, Any] | None = None) -> Iterator[str]:
    """Ask for a stream and yield its pieces of text."""
    asked = asked or {"model": "lab", "input": "go"}
    for event in client(url).responses.create(**asked, stream=True):
        if event.type == "response.output_text.delta":
            yield event.delta


@lru_cache
def anthropic_client(url: str) -> anthropic.Anthropic:
    """Return the one client for a base URL, which is without the version for this SDK."""
    return anthropic.Anthropic(base_url=url.removesuffix("/v1"), auth_token="none", max_retries=0)


def messages_texts(url: str, asked: dict[str, Any] | None = None) -> Iterator[str]:
    """Ask for a stream and yield its pieces of text."""
    question = {"model": "lab", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    stream = anthropic_client(url).messages.create(**(asked or question), stream=True)
    for event in stream:
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text


@lru_cache
def bedrock_client(url: str) -> Any:
    """Return the one client for a base URL."""
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url.removesuffix("/v1"),
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )


def converse_texts(url: str, asked: dict[str, Any] | None = None) -> Iterator[str]:
    """Ask for a stream and yield its pieces of text."""
    question = {"modelId": "lab", "messages": [{"role": "user", "content": [{"text": "go"}]}]}
    response = bedrock_client(url).converse_stream(**(asked or question))
    for event in response["stream"]:
        if "contentBlockDelta" in event:
            yield event["contentBlockDelta"]["delta"]["text"]


TEXTS = {
    "chat": texts,
    "responses": responses_texts,
    "messages": messages_texts,
    "converse": converse_texts,
}


class SdkSide:
    """What it can be asked for."""

    def __init__(self) -> None:
        self._readers: Readers

    def read(self, url: str, wire: str = "chat") -> dict[str, float]:
        """Read one stream."""
        return read_one(TEXTS[wire], url)

    def first_long(self, url: str, wire: str, times: int) -> list[float]:
        """Return the times to the first delta of calls with a long history."""
        history = payload(wire)
        return times_to_first(lambda: TEXTS[wire](url, history), times)

    def begin(self, url: str, streams: int) -> dict[str, float]:
        """Begin to read many."""
        self._readers = Readers(texts, url, streams)
        return self._readers.start()

    def count(self) -> dict[str, float]:
        """Return the count so far."""
        return self._readers.count()

    def finish(self) -> dict[str, float]:
        """Return the count when all is read."""
        return self._readers.finish()


if __name__ == "__main__":
    serve(SdkSide())
