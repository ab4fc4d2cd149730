"""Limits of silence, each with the rule that made it."""

import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol import budget


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "[::1]",
        "[::ffff:192.168.1.2]",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.9",
        "100.64.0.1",
        "100.127.255.255",
        "[fd00::1]",
        "host.docker.internal",
        "host.containers.internal",
        "host.lima.internal",
    ],
)
def test_neighbourhood_is_local(host):
    assert budget.is_local(f"http://{host}:8000/v1")


@pytest.mark.parametrize(
    "host",
    [
        "api.openai.com",
        "172.32.0.1",
        "172.15.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "8.8.8.8",
        "[2001:db8::1]",
        "host.docker.internal.example.com",
        "docker.internal.example.com",
        "localhost.example.com",
        "127.0.0.1.example.com",
        "mylocalhost",
    ],
)
def test_public_address_is_not_local(host):
    assert not budget.is_local(f"https://{host}/v1")


def test_address_without_a_host_is_not_local():
    assert not budget.is_local("https:///v1")


@pytest.mark.parametrize(
    ("model", "seconds"),
    [
        ("o1", 600),
        ("O1", 600),
        ("o1-mini-2024-09-12", 600),
        ("openai/o3", 600),
        ("vendor/team/o3-mini", 300),
        ("o3-mini:free", 300),
        ("o4-mini_custom", 300),
        ("deepseek-v4.1-flash", 600),
        ("deepseek-r1", 600),
        ("grok-4-fast-non-reasoning", 180),
        ("grok-4-fast-reasoning", 300),
        ("grok-4.20-reasoning", 300),
        ("claude-opus-4-1-20250805", 240),
        ("claude-opus-5", 240),
        ("claude-fable", 600),
        ("qwen3.5-397b", 180),
        ("qwen3:30b", 180),
        ("inkling", 300),
        ("us.anthropic.claude-opus-4-6-v1:0", 240),
        ("anthropic.claude-opus-4-6-v1:0", 240),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 180),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 180),
        ("us.anthropic.claude-sonnet-4-6", 180),
        ("us.deepseek.r1-v1:0", 600),
        ("nvidia.nemotron-3-super-v1:0", 600),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-opus-5", 240),
    ],
)
def test_reasoning_model_has_its_floor(model, seconds):
    floor = budget.reasoning_floor(model)

    assert floor is not None
    assert floor.seconds == seconds


@pytest.mark.parametrize(
    "model",
    ["", "gpt-4o", "o1x", "o12", "foo-o1", "claude-opus-45", "gpt-4.1", "us.meta.llama4", "us.o"],
)
def test_other_model_has_no_floor(model):
    assert budget.reasoning_floor(model) is None


def test_longest_slug_wins():
    assert budget.reasoning_floor("o3-mini") == budget.Floor(300.0, "o3-mini")
    assert budget.reasoning_floor("o3") == budget.Floor(600.0, "o3")


@pytest.mark.parametrize(
    ("wire", "local", "model", "context", "expected"),
    [
        ("chat", False, "gpt", 0, (180, "built-in")),
        ("chat", False, "gpt", 50_000, (180, "built-in")),
        ("chat", False, "gpt", 50_001, (240, "context over 50000 tokens")),
        ("chat", False, "gpt", 100_000, (240, "context over 50000 tokens")),
        ("chat", False, "gpt", 100_001, (300, "context over 100000 tokens")),
        ("chat", False, "o1", 0, (600, "floor 600 for o1")),
        ("chat", False, "o1", 200_000, (600, "floor 600 for o1")),
        ("chat", False, "qwen3", 0, (180, "built-in")),
        ("chat", False, "claude-opus-4", 100_001, (300, "context over 100000 tokens")),
        ("chat", True, "o1", 200_000, (900, "built-in: local endpoint")),
        ("converse", True, "gpt", 0, (180, "built-in")),
    ],
)
def test_stale_budget_is_the_highest_of_its_rules(wire, local, model, context, expected):
    assert expected == budget.stale_budget(wire=wire, local=local, model=model, context=context)


@pytest.mark.parametrize(
    ("wire", "local", "model", "context", "seconds"),
    [
        ("chat", False, "gpt", 0, 90),
        ("chat", False, "gpt", 50_001, 150),
        ("chat", False, "gpt", 100_001, 240),
        ("chat", False, "qwen3", 0, 180),
        ("chat", False, "qwen3", 100_001, 240),
        ("chat", True, "o1", 200_000, None),
        ("converse", True, "gpt", 0, 90),
    ],
)
def test_budget_without_streaming(wire, local, model, context, seconds):
    found = budget.plain_stale_budget(wire=wire, local=local, model=model, context=context)

    assert found.seconds == seconds


@pytest.mark.parametrize(
    ("wire", "local", "context", "stale_s", "seconds"),
    [
        ("chat", False, 0, 180.0, 180),
        ("responses", False, 9_999, 180.0, 120),
        ("responses", False, 10_000, 180.0, 180),
        ("responses", False, 10_000, 60.0, 120),
        ("responses", True, 0, 900.0, 900),
    ],
)
def test_first_event_budget(wire, local, context, stale_s, seconds):
    stale = budget.Budget(stale_s, "x")
    found = budget.first_event_budget(wire=wire, local=local, context=context, stale=stale)

    assert found.seconds == seconds


@pytest.mark.parametrize(
    ("rules", "context", "seconds", "origin"),
    [
        ({"seconds": 0}, 0, 300, "stale budget: x"),
        ({"seconds": 30}, 9_999, 30, "built-in: responses"),
        ({"seconds": 30}, 10_000, 300, "context of 10000 tokens or more"),
        ({"seconds": 30, "long_context": 500}, 500, 300, "context of 500 tokens or more"),
        ({"seconds": 30, "long_context": 0}, 99_999, 30, "built-in: responses"),
        ({"ceiling_s": 200}, 10_000, 200, "ceiling of 200"),
        ({"ceiling_s": 200}, 0, 120, "built-in: responses"),
    ],
)
def test_first_event_budget_by_rules(rules, context, seconds, origin):
    found = budget.first_event_budget(
        wire="responses",
        local=False,
        context=context,
        stale=budget.Budget(300.0, "x"),
        rules=budget.FirstEventRules(**rules),
    )

    assert found == (seconds, origin)


def test_alive_budget_is_the_stale_budget_and_at_least_two_minutes():
    assert budget.alive_budget(budget.Budget(30.0, "Policy")).seconds == 120
    assert budget.alive_budget(budget.Budget(600.0, "Policy")).seconds == 600
    assert budget.alive_budget(budget.Budget(None, "x")).seconds is None


def test_context_is_characters_over_four():
    payload = {"messages": ["x" * 400], "tools": [["y" * 400]], "temperature": "z" * 4_000}

    assert budget.context_tokens(payload) == 200


def test_context_counts_all_that_a_wire_calls_context():
    for key in ("messages", "tools", "input", "instructions", "system", "toolConfig"):
        assert budget.context_tokens({key: "x" * 400}) == 100


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 400_000},
        {"type": "image", "source": {"type": "base64", "data": "A" * 400_000}},
        {"format": "png", "source": {"bytes": "A" * 400_000}},
        {"name": "n", "format": "pdf", "source": {"s3Location": {"uri": "s3://bucket/key"}}},
        {"type": "input_audio", "input_audio": {"data": "A" * 400_000}},
        {"type": "file", "file": {"file_data": "A" * 400_000}},
        "data:image/png;base64," + "A" * 400_000,
        b"A" * 400_000,
    ],
)
def test_image_counts_its_price_and_not_its_length(part):
    payload = {"messages": [[part, "x" * 40]]}

    assert budget.context_tokens(payload) == budget.IMAGE_TOKENS + 10


def test_schema_with_a_property_named_type_is_no_image():
    schema = {"properties": {"type": {"type": "string"}, "image": {"type": "string"}}}

    assert 0 < budget.context_tokens({"tools": [schema]}) < budget.IMAGE_TOKENS


def test_numbers_and_nothing_count_little():
    assert budget.context_tokens({"messages": [1234, None, True, 1.5]}) == 2


def test_payload_that_holds_itself_is_refused():
    messages = []
    messages.append(messages)

    with pytest.raises(ConfigurationError, match="nested"):
        budget.context_tokens({"messages": messages})
