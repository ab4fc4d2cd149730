"""A client with a base URL that is wrong by ``/v1`` or by a slash is told the right one."""

import anthropic
import openai
import pytest

from tests.daemon.hosting import PROMPT


@pytest.mark.parametrize(
    ("asked", "meant", "base"),
    [
        ("POST /v1/v1/messages", "/v1/messages", ""),
        ("POST /v1/v1/chat/completions", "/v1/chat/completions", ""),
        ("GET /v1/v1/lanes", "/v1/lanes", ""),
        ("GET /v1/v1/turns/turn_x/events", "/v1/turns/turn_x/events", ""),
        ("POST /chat/completions", "/v1/chat/completions", "/v1"),
        ("POST /responses", "/v1/responses", "/v1"),
        ("POST /messages", "/v1/messages", "/v1"),
        ("GET /models", "/v1/models", "/v1"),
        ("GET /models/some/one", "/v1/models/some/one", "/v1"),
        ("POST //chat/completions", "/v1/chat/completions", "/v1"),
        ("POST /v1//chat/completions", "/v1/chat/completions", "/v1"),
        ("POST //v1/messages", "/v1/messages", ""),
    ],
)
def test_right_base_url_is_said(house, client, asked, meant, base):
    url = house.daemon.url
    method, path = asked.split()
    response = client.request(method, f"{url}{path}", json=PROMPT)

    assert response.status_code == 404
    assert response.json()["error"]["message"] == (
        f"there is nothing at {path!r}: {meant!r} is meant, so give '{url}{base}' as the base URL"
    )


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", "/v1/v1/v1/messages", "/v1"])
def test_path_that_is_like_none_is_answered_with_those_there_are(client, path):
    response = client.post(path, json=PROMPT)

    assert response.status_code == 404
    assert "ask for a turn by POST to one of /v1/chat/completions, " in response.text


def test_clients_of_others_show_it(house):
    """Each SDK adds another path to its base URL, and has its own form of an error."""
    url = house.daemon.url
    asked = {"model": "test-model", "messages": PROMPT["messages"]}
    with (
        anthropic.Anthropic(base_url=f"{url}/v1", api_key="any", max_retries=0) as client,
        pytest.raises(anthropic.NotFoundError, match=f"give '{url}' as the base URL") as caught,
    ):
        client.messages.create(**asked, max_tokens=9)
    assert caught.value.body["type"] == "error"
    with (
        openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match=f"give '{url}/v1' as the base URL"),
    ):
        client.chat.completions.create(**asked)
