"""The official SDKs as clients of bytes, and their types as judges of every frame."""

import anthropic
import httpx2
import openai
import pydantic
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from tests.daemon.fronts.playing import data_of, payload_for


_STRICT = {
    "chat": pydantic.TypeAdapter(ChatCompletionChunk),
    "responses": pydantic.TypeAdapter(ResponseStreamEvent),
    "messages": pydantic.TypeAdapter(RawMessageStreamEvent),
}
WHOLE = {"chat": ChatCompletion, "responses": Response, "messages": Message}


def judge(api, body):
    """Check every frame of a stream that has not failed against the types of its SDK."""
    for data in data_of(body):
        if isinstance(data, dict) and not (api == "messages" and data["type"] == "ping"):
            try:
                _STRICT[api].validate_python(data, strict=True)
            except pydantic.ValidationError:  # its text has all that the union could have been
                raise AssertionError(f"this is no event of {api}: {data}") from None


def joined(api, body, **fields):
    """Return what the SDK makes of a stream, as plain JSON."""
    payload = payload_for(api, **fields)
    payload.pop("stream")
    with _client(api, httpx2.Response(200, headers=_SSE, content=body)) as client:
        match api:
            case "chat":
                with client.chat.completions.stream(**payload) as stream:
                    stream.until_done()
                    final = stream.current_completion_snapshot
            case "responses":
                with client.responses.stream(**payload) as stream:
                    *_, last = stream
                    final = last.response
            case "messages":
                with client.messages.stream(**payload) as stream:
                    stream.until_done()
                    final = stream.get_final_message()
    return final.to_dict()


def heard(api, body, **fields):
    """Return the raw events that the SDK hands on, and the exception that ends them, if any."""
    payload = payload_for(api, **fields)
    events = []
    with _client(api, httpx2.Response(200, headers=_SSE, content=body)) as client:
        try:
            events += map(_plain, _create(api, client)(**payload))
        except (openai.APIError, anthropic.APIError) as error:
            return events, error
    return events, None


def _plain(event):
    return event.to_dict()


def refused(api, reply):
    """Return the exception that an error before the stream becomes."""
    response = httpx2.Response(reply.status, headers=reply.headers, json=reply.body)
    with _client(api, response) as client:
        try:
            _create(api, client)(**payload_for(api))
        except (openai.APIStatusError, anthropic.APIStatusError) as error:
            return error
    raise AssertionError("no error")


def requests_until_given_up(api, reply):
    """Say how often the SDK asks before it gives up."""
    count = 0

    def answer(request):
        nonlocal count
        count += 1
        headers = {**reply.headers, "retry-after-ms": "1"}
        return httpx2.Response(reply.status, headers=headers, json=reply.body)

    with _client(api, answer, max_retries=2) as client:
        try:
            _create(api, client)(**payload_for(api))
        except (openai.APIStatusError, anthropic.APIStatusError):
            return count
    raise AssertionError("no error")


_SSE = {"content-type": "text/event-stream"}


def _client(api, response, max_retries=0):
    handler = response if callable(response) else lambda _request: response
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    sdk = anthropic.Anthropic if api == "messages" else openai.OpenAI
    return sdk(
        api_key="k", base_url="http://daemon.test/v1", http_client=http, max_retries=max_retries
    )


def _create(api, client):
    return {
        "chat": lambda: client.chat.completions.create,
        "responses": lambda: client.responses.create,
        "messages": lambda: client.messages.create,
    }[api]()
