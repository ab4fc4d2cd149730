"""Keys do not get into captures, wherever they stand and however a body is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.actors.provider.masks import Masks
from tidegate.protocol.attempts import Target


KEY = "sk-secret-0123456789"
TARGET = Target(
    "chat",
    api_key=KEY,
    headers=(("x-team-token", "team-token-77"), ("x-title", "data"), ("x-tenant", "t" * 20)),
    query=(("code", "query-code-1"), ("api-key", "other-key-2")),
    options=(("AWS_SECRET_ACCESS_KEY", "aws-secret-3"), ("region", "us-east-1")),
    proxy="http://user:proxy-word-4@proxy:3128",
)
SECRETS = (KEY, "team-token-77", "t" * 20, "other-key-2", "aws-secret-3", "proxy-word-4")


@pytest.fixture
def masks():
    return Masks(TARGET)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "api-key",
        "x-api-key",
        "x-goog-api-key",
        "apikey",
        "Ocp-Apim-Subscription-Key",
        "X-Amz-Security-Token",
        "cookie",
        "set-cookie",
        "x-signature",
        "x-auth-token",
        "client_secret",
        "subscription-key",
    ],
)
def test_header_that_is_called_like_a_secret_is_one(masks, name):
    assert masks.headers([(name, "whatever")]) == [(name, "***")]


@pytest.mark.parametrize(
    "name", ["content-type", "retry-after", "x-ratelimit-remaining-tokens", "x-request-id"]
)
def test_header_that_tells_something_stays(masks, name):
    assert masks.headers([(name, "17")]) == [(name, "17")]


def test_whatever_was_given_with_the_endpoint_is_masked_in_heads(masks):
    assert masks.headers([("x-title", "data"), ("x", f"a {KEY} b")]) == [
        ("x-title", "***"),
        ("x", "a *** b"),
    ]


def test_address_keeps_its_form(masks):
    url = f"https://user:word@host:8/v1/{KEY}/chat?api-version=1&code=query-code-1&sig=x%2Fy&e="

    assert masks.url(url) == "https://host:8/v1/***/chat?api-version=1&code=***&sig=***&e="


def test_body_is_masked_in_its_length(masks):
    body = f"data: {{'error': '{KEY}'}}\n\n".encode()

    masked = masks.whole(body)

    assert masked == body.replace(KEY.encode(), b"*" * len(KEY))


def test_word_of_the_wire_that_was_given_as_a_header_stays_in_bodies(masks):
    assert masks.whole(b"data: {}\n\n") == b"data: {}\n\n"


def test_key_too_short_to_be_one_stays_in_bodies():
    assert Masks(Target("chat", api_key="none")).whole(b"none") == b"none"


@given(
    words=st.lists(st.sampled_from([*SECRETS, "data: ", "sk-", "sk-secret-", "t", "\n\n", "é"])),
    cuts=st.lists(st.integers(0, 400)),
)
def test_body_in_parts_is_masked_as_the_whole_is(words, cuts):
    masks = Masks(TARGET)
    body = "".join(words).encode()
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    mask = masks.body()

    parts = [mask.feed(body[a:b]) for a, b in pairwise(edges)]
    joined = b"".join([*parts, mask.rest()])

    assert joined == masks.whole(body)
    assert not [secret for secret in SECRETS if secret.encode() in joined]
