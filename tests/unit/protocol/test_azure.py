"""OpenAI's wires on Azure: where they are, and as whom they are asked."""

import pytest

import tidegate as tg
from tidegate.protocol.targets import target_of


URL = "https://name.openai.azure.com"
OPENAI = {"OPENAI_API_KEY": "sk-openai", "OPENAI_BASE_URL": "https://elsewhere.test/v1"}
AZURE = {"AZURE_OPENAI_ENDPOINT": f"{URL}/", "AZURE_OPENAI_API_KEY": "azure-key"}


@pytest.fixture(params=[tg.Endpoint.chat, tg.Endpoint.responses], ids=["chat", "responses"])
def make(request):
    return lambda *given, **options: request.param(*given, api_version="2024-10-21", **options)


def test_environment_may_give_address_and_key(make):
    target = target_of(make(), OPENAI | AZURE)

    assert (target.base_url, target.api_key) == (URL, "azure-key")
    assert target.api_version == "2024-10-21"


def test_token_of_the_environment_comes_before_the_key_as_the_sdk_has_it(make):
    target = target_of(make(), AZURE | {"AZURE_OPENAI_AD_TOKEN": "ey.j.t"})

    assert target.api_key == "ey.j.t"


def test_what_is_given_comes_first(make):
    target = target_of(make("https://mine.test", "env:MINE"), AZURE | {"MINE": "my-key"})

    assert (target.base_url, target.api_key) == ("https://mine.test", "my-key")


def test_key_of_another_provider_is_not_sent_to_azure(make):
    assert target_of(make(URL), OPENAI).api_key == ""


def test_address_that_is_missing_is_named(make):
    with pytest.raises(tg.ConfigurationError, match="AZURE_OPENAI_ENDPOINT"):
        target_of(make(), OPENAI)


def test_address_without_a_version_is_a_server_like_any_other():
    endpoint = tg.Endpoint.chat(f"{URL}/openai/v1")

    assert target_of(endpoint, OPENAI | AZURE).api_key == "sk-openai"
