"""The models that a client may name, as far as the configuration names them."""

import pytest

from tests.daemon.e2e.conftest import endpoint
from tidegate.lab import Lab


ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.fixture
def client(serve):
    with Lab() as lab:
        daemon = serve(
            endpoint(lab, name="main", more='models = ["gpt-*", "gpt-5", "o?", "[x]y"]'),
            endpoint(lab, name="other", more='models = ["gpt-5", "small"]'),
            endpoint(lab, "messages", name="claude", more='models = ["claude-opus", "claude-*"]'),
        )
        with daemon.client() as client:
            yield client


def test_names_are_listed_and_patterns_are_not(client):
    listed = client.get("/v1/models").json()["data"]
    of_messages = client.get("/v1/models", headers=ANTHROPIC).json()["data"]

    named = [(each["id"], each["owned_by"]) for each in listed]
    assert named == [("gpt-5", "main"), ("small", "other"), ("claude-opus", "claude")]
    assert [each["id"] for each in of_messages] == ["claude-opus"]


def test_one_is_shown_by_its_name_and_a_pattern_is_none(client):
    assert client.get("/v1/models/gpt-5").json()["owned_by"] == "main"
    assert client.get("/v1/models/claude-opus", headers=ANTHROPIC).json()["id"] == "claude-opus"
    for path, headers in (("gpt-*", {}), ("gpt-4", {}), ("gpt-5", ANTHROPIC)):
        assert client.get(f"/v1/models/{path}", headers=headers).status_code == 404
