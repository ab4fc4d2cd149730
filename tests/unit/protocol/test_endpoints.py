"""Where requests go and as whom."""

import pickle

import msgspec
import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol.attempts import Target
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy
from tidegate.protocol.secrets import MissingKey, Secret
from tidegate.protocol.targets import target_of


URL = "https://api.example.com/v1"


def test_label_has_wire_and_address_and_nothing_private():
    endpoint = Endpoint.chat(f"{URL}/", "sk-secret", query={"q": "secret"})

    assert endpoint.label == f"chat {URL}"
    assert Endpoint.chat().label == "chat https://api.openai.com/v1"
    assert Endpoint.local().label == "chat local smollm2"


def test_nothing_private_is_written():
    endpoint = Endpoint.chat(
        URL, "sk-secret", headers={"Authorization": "secret"}, proxy="http://u:secret@host"
    )

    assert "secret" not in repr(endpoint)
    assert "secret" not in str(endpoint)
    assert "secret" not in repr(endpoint.__rich_repr__())
    assert "secret" not in repr(endpoint.key)


def test_key_is_the_same_whatever_the_secret():
    assert Endpoint.chat(URL, "sk-1").key == Endpoint.chat(f"{URL}/", "sk-2").key
    assert hash(Endpoint.chat(URL, "sk-1")) == hash(Endpoint.chat(URL, "sk-1"))


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"a": "b"}},
        {"query": {"a": "b"}},
        {"organization": "o"},
        {"project": "p"},
        {"api_version": "1"},
        {"proxy": "http://host"},
        {"verify": False},
    ],
)
def test_key_differs_with_each_option(options):
    assert Endpoint.chat(URL, **options).key != Endpoint.chat(URL).key


def test_reference_encodes_and_pickles_as_itself():
    endpoint = Endpoint.chat(URL, "env:KEY", headers={"a": "b"})
    body = msgspec.json.encode(endpoint)

    assert body == b'{"base_url":"%s","api_key":"env:KEY","headers":{"a":"b"}}' % URL.encode()
    assert msgspec.json.decode(body, type=Endpoint) == endpoint
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint


@pytest.mark.parametrize("leave", [msgspec.json.encode, msgspec.to_builtins, pickle.dumps])
def test_literal_key_does_not_leave_the_process(leave):
    with pytest.raises(ConfigurationError, match="env:NAME"):
        leave(Endpoint.chat(URL, "sk-secret"))


def test_endpoint_comes_from_toml():
    endpoint = msgspec.toml.decode(
        f"""
        base_url = "{URL}"
        api_key = "env:KEY"
        verify = "/etc/ca.pem"
        headers = {{ x-team = "a" }}
        policy = {{ retries = 3, backoff_s = [1, 2] }}
        """,
        type=Endpoint,
    )

    assert endpoint == msgspec.structs.replace(
        Endpoint.chat(URL, "env:KEY", headers={"x-team": "a"}, verify="/etc/ca.pem"),
        policy=Policy(retries=3, backoff_s=(1.0, 2.0)),
    )
    assert endpoint.api_key == Secret("env:KEY")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('bas_url = "http://host"', "bas_url"),
        ('base_url = "host"', "base_url"),
        ("policy = { retries = -1 }", "retries"),
        ("verify = 5", "verify"),
        ('wire = "telnet"', "telnet"),
        ("api_key = 5", "key"),
    ],
)
def test_mistake_in_toml_is_named(text, named):
    with pytest.raises(ValueError, match=named):
        msgspec.toml.decode(text, type=Endpoint)


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "nowhere"},
        {"base_url": 5},
        {"base_url": f"{URL}/chat/completions"},
        {"api_key": ""},
        {"headers": {"a b": "c"}},
        {"headers": 5},
        {"headers": [("a", "b")]},
        {"query": {"a": "\n"}},
        {"organization": ""},
        {"project": 5},
        {"api_version": "\n"},
        {"proxy": "socks5://host"},
        {"verify": ""},
        {"verify": "/ca\udcff.pem"},
        {"verify": None},
    ],
)
def test_option_that_makes_no_sense_is_refused(options):
    with pytest.raises(ConfigurationError):
        Endpoint.chat(**options)


def test_other_fields_that_make_no_sense_are_refused():
    for fields in ({"policy": 5}, {"local_model": ""}, {"local_model": "a", "base_url": URL}):
        with pytest.raises(ConfigurationError):
            Endpoint(**fields)


@pytest.mark.parametrize(
    ("make", "variable", "path", "wanted"),
    [
        (Endpoint.chat, "OPENAI_BASE_URL", "/v1/chat/completions", "/v1'"),
        (Endpoint.responses, "OPENAI_BASE_URL", "/v1/responses", "/v1'"),
        (Endpoint.messages, "ANTHROPIC_BASE_URL", "/v1/messages", "host'"),
    ],
)
def test_address_is_the_one_to_which_the_path_is_added(make, variable, path, wanted):
    address = f"http://host{path}"
    with pytest.raises(ConfigurationError, match=f"^base_url='{address}'.*give .*{wanted}$"):
        make(address)
    with pytest.raises(ConfigurationError, match=f"^{variable}='{address}'.*give .*{wanted}$"):
        target_of(make(), {variable: address})


def test_target_has_all_that_was_given():
    endpoint = Endpoint.chat(
        f"{URL}/",
        Secret("sk-1"),
        headers={"a": "b"},
        query={"c": "d"},
        organization="o",
        project="p",
        api_version="1",
        proxy="http://host",
        verify="/ca.pem",
    )

    assert target_of(endpoint, {"OPENAI_ORG_ID": "x", "OPENAI_API_KEY": "y"}) == Target(
        "chat",
        base_url=URL,
        api_key="sk-1",
        headers=(("a", "b"),),
        query=(("c", "d"),),
        organization="o",
        project="p",
        api_version="1",
        proxy="http://host",
        verify="/ca.pem",
    )


def test_variables_of_the_sdk_are_the_defaults():
    environ = {
        "OPENAI_API_KEY": "sk-1",
        "OPENAI_BASE_URL": URL,
        "OPENAI_ORG_ID": "o",
        "OPENAI_PROJECT_ID": "p",
    }

    assert target_of(Endpoint.chat(), environ) == Target(
        "chat", base_url=URL, api_key="sk-1", organization="o", project="p"
    )


def test_official_address_needs_a_key():
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        target_of(Endpoint.chat(), {})
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        target_of(Endpoint.chat("https://api.openai.com/v1"), {})


def test_other_address_does_without_a_key():
    assert target_of(Endpoint.chat(URL), {}).api_key == ""
    assert target_of(Endpoint.chat(URL), {"OPENAI_API_KEY": "sk-1"}).api_key == "sk-1"


def test_header_of_the_users_own_stands_in_for_a_key():
    endpoint = Endpoint.chat(headers={"authorization": "Bearer x"})

    assert target_of(endpoint, {}).api_key == ""


def test_reference_that_was_given_must_hold_a_key():
    with pytest.raises(MissingKey, match="MY_KEY"):
        target_of(Endpoint.chat(URL, "env:MY_KEY"), {"OPENAI_API_KEY": "sk-1"})


def test_reference_is_read_at_each_start():
    endpoint = Endpoint.chat(URL, "env:MY_KEY")

    assert target_of(endpoint, {"MY_KEY": "one"}).api_key == "one"
    assert target_of(endpoint, {"MY_KEY": "two"}).api_key == "two"


def test_address_in_the_environment_that_is_none_is_named():
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL"):
        target_of(Endpoint.chat(), {"OPENAI_BASE_URL": "nowhere"})


def test_local_server_gets_no_key():
    target = target_of(
        Endpoint.local(), {"OPENAI_API_KEY": "sk-1"}, base_url="http://127.0.0.1:1/v1"
    )

    assert target == Target("chat", base_url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("wire", "address"),
    [
        ("chat", "http://127.0.0.1:1/v1"),
        ("responses", "http://127.0.0.1:1/v1"),
        ("messages", "http://127.0.0.1:1"),
    ],
)
def test_local_server_speaks_three_wires_at_one_address(wire, address):
    endpoint = Endpoint(wire=wire, local_model="smollm2")
    target = target_of(endpoint, {"OPENAI_API_KEY": "sk-1"}, base_url="http://127.0.0.1:1/v1")

    assert target == Target(wire, base_url=address)
    assert endpoint.label == f"{wire} local smollm2"


def test_local_server_is_in_no_region():
    with pytest.raises(ConfigurationError, match="local_model and region"):
        Endpoint.messages(local_model="smollm2", region="us-east5")


def test_local_server_without_an_address_is_refused():
    with pytest.raises(ConfigurationError, match="smollm2"):
        target_of(Endpoint.local(), {})


def test_located_endpoint_has_the_address_that_holds():
    given = Endpoint.chat(URL)

    assert given.located({"OPENAI_BASE_URL": "http://other"}) is given
    assert Endpoint.local("x.gguf").located({}).local_model == "x.gguf"
    assert Endpoint.chat().located({}).base_url == "https://api.openai.com/v1"
    assert Endpoint.chat().located({"OPENAI_BASE_URL": URL}).label == given.label


def test_local_is_what_is_near():
    assert Endpoint.local().is_local
    assert Endpoint.chat("http://127.0.0.1:1").is_local
    assert not Endpoint.chat().is_local


@pytest.mark.parametrize(
    ("address", "takes"),
    [
        (URL, True),
        (None, True),
        ("http://generativelanguage.googleapis.com/v1beta", False),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", True),
    ],
)
def test_native_gemini_address_takes_no_usage_option(address, takes):
    assert Endpoint.chat(address).takes_usage_option is takes


@pytest.mark.parametrize(
    ("make", "label"),
    [
        (Endpoint.responses, "responses https://api.openai.com/v1"),
        (Endpoint.messages, "messages https://api.anthropic.com"),
        (lambda: Endpoint.converse("eu-west-1"), "converse eu-west-1"),
        (lambda: Endpoint.converse(endpoint_url=URL), f"converse {URL}"),
        (Endpoint.converse, "converse default"),
        (lambda: Endpoint.custom("a.b:c"), "custom a.b:c"),
    ],
)
def test_each_wire_has_a_label(make, label):
    assert make().label == label


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Endpoint.messages(organization="o"), "organization"),
        (lambda: Endpoint.converse(api_version="1"), "api_version"),
        (lambda: Endpoint.converse(local_model="x"), "local_model"),
        (lambda: Endpoint.responses(wire="chat"), "wire"),
        (lambda: Endpoint(wire="chat", region="x"), "region"),
        (lambda: Endpoint(wire="custom", factory="a:b", headers={"a": "b"}), "headers"),
        (lambda: Endpoint.custom("nowhere"), "nowhere"),
        (lambda: Endpoint(wire="custom"), "factory"),
        (lambda: Endpoint.custom(dict), "imports it by its name, so give 'package.module:factory'"),
        (lambda: Endpoint.converse("https://eu.example"), "region=.*'eu-west-1'"),
        (lambda: Endpoint.custom("a:b", placement="thread"), "placement"),
        (lambda: Endpoint(wire="telepathy"), "telepathy"),
    ],
)
def test_option_of_another_wire_is_refused_by_name(make, named):
    with pytest.raises(ConfigurationError, match=named):
        make()


def test_each_wire_has_its_own_variables():
    environ = {
        "OPENAI_API_KEY": "sk-openai",
        "OPENAI_ORG_ID": "org",
        "ANTHROPIC_AUTH_TOKEN": "sk-token",
        "AWS_BEARER_TOKEN_BEDROCK": "sk-aws",
        "AWS_REGION": "eu-west-1",
        "OTHER": "x",
    }

    responses = target_of(Endpoint.responses(), environ)
    messages = target_of(Endpoint.messages(), environ)
    converse = target_of(Endpoint.converse("us-east-1"), environ)

    assert (responses.api_key, responses.organization) == ("sk-openai", "org")
    assert (messages.api_key, messages.organization) == ("sk-token", "")
    assert target_of(Endpoint.messages(), environ | {"ANTHROPIC_API_KEY": "k"}).api_key == "k"
    assert converse.api_key == "sk-aws"
    assert converse.options == (
        ("AWS_BEARER_TOKEN_BEDROCK", "sk-aws"),
        ("AWS_REGION", "eu-west-1"),
        ("region", "us-east-1"),
    )


def test_official_address_of_another_wire_needs_its_own_key():
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
        target_of(Endpoint.messages(), {"OPENAI_API_KEY": "sk"})
    assert target_of(Endpoint.messages(headers={"X-Api-Key": "k"}), {}).api_key == ""
    assert target_of(Endpoint.converse("us-east-1"), {}).api_key == ""


def test_function_is_asked_for_the_key_at_each_start():
    keys = iter(["one", "two"])
    endpoint = Endpoint.chat(URL, lambda: next(keys))

    assert [target_of(endpoint, {}).api_key for _ in range(2)] == ["one", "two"]
    assert "one" not in repr(endpoint)
    with pytest.raises(ConfigurationError, match="function"):
        pickle.dumps(endpoint)
    with pytest.raises(TypeError, match="function"):
        msgspec.json.encode(endpoint)
