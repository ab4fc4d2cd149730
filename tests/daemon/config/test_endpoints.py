"""Which endpoint takes a request."""

import pytest

import tidegate as tg
from tidegate.daemon.config.endpoints import NoEndpoint, by_name, choose
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig
from tidegate.daemon.serve import keys_of
from tidegate.errors import ConfigurationError
from tidegate.testing import Lab, chat


def at(wire, *models, **fields):
    return EndpointConfig(wire=wire, models=models or ("*",), **fields)


CONFIG = DaemonConfig(
    endpoints={
        "main": at("chat", "gpt-*", "o?", "[x]y"),
        "other": at("chat", "gpt-5"),
        "claude": at("messages", "claude-*"),
        "here": at("local", "smollm2"),
        "rock": at("converse", region="eu-west-1"),
        "aside": EndpointConfig(wire="responses", models=[]),
    }
)


@pytest.mark.parametrize(
    ("wire", "model", "name"),
    [
        ("chat", "gpt-5", "main"),
        ("chat", "o3", "main"),
        ("chat", "xy", "main"),
        ("chat", "smollm2", "here"),
        ("responses", "smollm2", "here"),
        ("messages", "smollm2", "here"),
        ("messages", "claude-x", "claude"),
        ("converse", "", "rock"),
    ],
)
def test_first_match_on_the_wire_is_chosen(wire, model, name):
    chosen, endpoint = choose(CONFIG, wire, model)

    assert (chosen, endpoint.wire) == (name, wire)


@pytest.mark.parametrize(
    ("wire", "model"), [("chat", "GPT-5"), ("chat", "o10"), ("responses", "gpt-5"), ("custom", "x")]
)
def test_what_nobody_takes_is_refused_with_what_there_is(wire, model):
    with pytest.raises(NoEndpoint) as refused:
        choose(CONFIG, wire, model)

    assert str(refused.value) == (
        f"no endpoint of the wire {wire!r} takes the model {model!r}: there are main (chat: "
        "gpt-*, o?, [x]y); other (chat: gpt-5); claude (messages: claude-*); here (chat, "
        "responses, messages: smollm2); rock (converse: *); aside (responses: by name alone)"
    )
    assert isinstance(refused.value, LookupError)


def test_refusal_shows_no_more_of_a_name_than_needed():
    with pytest.raises(NoEndpoint) as refused:
        choose(CONFIG, "chat", "x" * 10_000)

    assert len(str(refused.value)) < 500


def test_request_without_a_model_is_taken_by_who_takes_all():
    assert choose(CONFIG, "converse", "")[0] == "rock"
    with pytest.raises(NoEndpoint, match="takes a request without a model"):
        choose(CONFIG, "chat", "")


def test_endpoint_has_a_name_whatever_its_patterns():
    assert by_name(CONFIG, "aside").wire == "responses"
    assert by_name(CONFIG, "here").wire == "chat"
    assert by_name(CONFIG, "here", "messages").wire == "messages"
    assert by_name(CONFIG, "main", "chat") is by_name(CONFIG, "main")
    with pytest.raises(NoEndpoint, match=r"there is no endpoint 'nobody': there are main \(chat"):
        by_name(CONFIG, "nobody")
    with pytest.raises(NoEndpoint, match="'main' does not speak the wire 'messages'"):
        by_name(CONFIG, "main", "messages")


def test_policy_for_all_stands_in_for_what_an_endpoints_own_leaves_out():
    config = DaemonConfig(
        endpoints={"a": at("chat", policy=tg.Policy(retries=7))},
        policy=tg.Policy(retries=1, stale_after_s=5),
    )

    assert by_name(config, "a").policy == tg.Policy(retries=7, stale_after_s=5)


def test_each_field_reaches_the_runtimes_endpoint():
    fields = {
        "base_url": "https://api.example/v1",
        "headers": {"a": "b"},
        "query": {"c": "d"},
        "organization": "o",
        "project": "p",
        "proxy": "http://proxy:3128",
        "verify": "/ca.pem",
    }
    made = at("chat", api_key="env:KEY", **fields).on_wire("chat")

    assert {name: getattr(made, name) for name in fields} == fields
    assert made.api_key == tg.Secret("env:KEY")
    assert at("chat", api_version="1").on_wire("chat").api_version == "1"
    aws = at("converse", region="eu-west-1", profile="p", role_arn="r").on_wire("converse")
    assert (aws.region, aws.profile, aws.role_arn) == ("eu-west-1", "p", "r")
    assert at("local", local_model="x.gguf").on_wire("messages").local_model == "x.gguf"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"wire": "chat", "region": "x"}, "region"),
        ({"wire": "chat", "local_model": "x"}, "local_model"),
        ({"wire": "local", "base_url": "http://x"}, "base_url"),
        ({"wire": "local", "headers": {"a": "b"}}, "headers"),
        ({"wire": "custom"}, "wire='custom'"),
        ({"wire": "chat", "verify": 5}, "verify=5: give true, false or the path"),
        ({"wire": "chat", "models": "gpt"}, "models='gpt': give a list"),
        ({"wire": "chat", "policy": 5}, "policy=5"),
        ({"wire": "chat", "headers": {"a": 5}}, "headers"),
        ({"wire": "messages", "project": "p"}, "without a region"),
    ],
)
def test_endpoint_that_no_request_could_use_is_refused(fields, named):
    with pytest.raises(ConfigurationError, match=named):
        EndpointConfig(**fields)


def test_turn_has_the_key_that_is_in_the_file_when_it_starts(tmp_path):
    key = tmp_path / "key"
    with Lab([chat.answer("a"), chat.answer("b")]) as lab, tg.Runtime(workers=1) as runtime:
        config = DaemonConfig(
            endpoints={"a": EndpointConfig(wire="chat", base_url=lab.url, api_key=f"file:{key}")}
        )
        request = tg.Request(by_name(config, "a"), {"model": "m", "messages": []})
        for content in ("first\n", "second\n"):
            key.write_text(content)
            runtime.run(request)
        key.write_text("")
        with pytest.raises(tg.AuthRejected, match=r"missing_key\): the key file .* is empty"):
            runtime.run(request)

    sent = [request.headers["authorization"] for request in lab.requests]
    assert sent == ["Bearer first", "Bearer second"]


def test_turn_has_the_header_that_is_in_the_file_when_it_starts(tmp_path):
    token = tmp_path / "token"
    with Lab([chat.answer("a"), chat.answer("b")]) as lab, tg.Runtime(workers=1) as runtime:
        headers = {"authorization": f"file:{token}", "x-team": "blue"}
        config = DaemonConfig(
            endpoints={"a": EndpointConfig(wire="chat", base_url=lab.url, headers=headers)}
        )
        request = tg.Request(by_name(config, "a"), {"model": "m", "messages": []})
        for content in ("Bearer first\n", "Bearer second\n"):
            token.write_text(content)
            runtime.run(request)
        token.unlink()
        with pytest.raises(tg.AuthRejected, match=r"headers\['authorization'\]: the key file"):
            runtime.run(request)

    sent = [(each.headers["authorization"], each.headers["x-team"]) for each in lab.requests]
    assert sent == [("Bearer first", "blue"), ("Bearer second", "blue")]


def test_log_is_told_of_each_secret_that_it_must_never_show(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "sk-of-a-variable")
    (tmp_path / "token").write_text("Bearer sk-of-a-file\n")
    headers = {"authorization": f"file:{tmp_path}/token", "x-none": "env:NOBODY", "x-team": "blue"}
    endpoint = at("chat", api_key="env:KEY", headers=headers)

    told = keys_of(DaemonConfig(endpoints={"a": endpoint}))

    assert told == ["sk-of-a-variable", "Bearer sk-of-a-file", "sk-of-a-file"]


def test_nothing_secret_is_in_what_is_printed():
    endpoint = at(
        "chat",
        headers={"authorization": "sk-secret"},
        query={"key": "sk-secret"},
        proxy="http://user:sk-secret@proxy",
    )

    assert "sk-secret" not in repr(DaemonConfig(endpoints={"a": endpoint}))
