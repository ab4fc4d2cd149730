"""Claude on Vertex AI: where it is, and as whom it is asked."""

import pytest

import tidegate as tg
from tidegate.protocol.secrets import MissingKey
from tidegate.protocol.targets import target_of


def vertex(**options):
    return tg.Endpoint.messages(**({"region": "us-east5", "project": "p"} | options))


@pytest.mark.parametrize(
    ("region", "address"),
    [
        ("us-east5", "https://us-east5-aiplatform.googleapis.com/v1"),
        ("global", "https://aiplatform.googleapis.com/v1"),
        ("us", "https://aiplatform.us.rep.googleapis.com/v1"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1"),
    ],
)
def test_region_is_the_address(region, address):
    environ = {"ANTHROPIC_BASE_URL": "https://elsewhere.test", "ANTHROPIC_API_KEY": "sk-ant"}
    target = target_of(vertex(region=region, api_key=lambda: "ya29"), environ)

    assert (target.base_url, target.api_key, target.project) == (address, "ya29", "p")
    assert target.options == (("region", region),)


def test_environment_may_give_address_and_project():
    environ = {
        "ANTHROPIC_VERTEX_BASE_URL": "https://gateway.test/v1",
        "ANTHROPIC_VERTEX_PROJECT_ID": "of the environment",
    }
    target = target_of(vertex(project=None), environ)

    assert (target.base_url, target.project) == ("https://gateway.test/v1", "of the environment")
    assert target.api_key == ""


def test_key_of_another_provider_is_not_sent_to_google():
    with pytest.raises(MissingKey, match="access token: give api_key"):
        target_of(vertex(), {"ANTHROPIC_API_KEY": "sk-ant", "ANTHROPIC_AUTH_TOKEN": "sk-ant"})


def test_own_authorization_header_is_enough():
    endpoint = vertex(headers={"Authorization": "Bearer ya29"})

    assert target_of(endpoint, {"ANTHROPIC_API_KEY": "sk-ant"}).api_key == ""


def test_project_that_is_missing_is_named():
    with pytest.raises(tg.ConfigurationError, match="ANTHROPIC_VERTEX_PROJECT_ID"):
        target_of(vertex(project=None, api_key="ya29"), {})


def test_project_needs_a_region():
    with pytest.raises(tg.ConfigurationError, match="project='p' without a region"):
        tg.Endpoint.messages(project="p")


@pytest.mark.parametrize("region", ["", "us east", "evil.test/x?", "US"])
def test_region_must_be_a_name(region):
    with pytest.raises(tg.ConfigurationError, match="region="):
        vertex(region=region)


def test_model_is_needed_for_it_is_in_the_address():
    with pytest.raises(tg.ConfigurationError, match="'model'"):
        tg.Request(vertex(), {"messages": []})

    tg.Request(tg.Endpoint.messages(), {"messages": []})
