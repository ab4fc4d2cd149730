"""What may be set, and what then holds and why."""

import math

import msgspec
import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.requests import Request
from tidegate.protocol.resolution import Limits
from tidegate.protocol.wires import preload_of


CLOUD = Endpoint.chat("https://api.example.com/v1")
NEAR = Endpoint.chat("http://127.0.0.1:8000/v1")


def request(endpoint=CLOUD, model="gpt", **options):
    return Request(endpoint, {"model": model, "messages": []}, **options)


def resolved(policy=None, asked=None, settings=None, **environ):
    return (policy or Policy()).resolved(asked or request(), settings, environ=environ)


def test_nothing_given_leaves_the_built_in_values():
    values = resolved().values()

    assert msgspec.structs.asdict(values) | {"origins": ()} == {
        "retries": 2,
        "backoff_s": (1.0, 2.0, 4.0),
        "backoff_jitter": 0.1,
        "retry_after_cap_s": 60.0,
        "connect_timeout_s": 30.0,
        "first_event_timeout_s": 180.0,
        "stale_after_s": 180.0,
        "alive_timeout_s": 180.0,
        "deadline_s": None,
        "finish_grace_s": 2.0,
        "kill_grace_s": 0.25,
        "stale_giveup": 5,
        "giveup_cooldown_s": 60.0,
        "after_visible_text": "stop",
        "window_bytes": 262_144,
        "event_bytes_max": 8_388_608,
        "plain_stale_after_s": 90.0,
        "plain_first_event_timeout_s": 90.0,
        "origins": (),
    }


SAMPLES = {
    "retries": (7, "7"),
    "backoff_s": ((9.0,), "9"),
    "backoff_jitter": (0.5, "0.5"),
    "after_visible_text": ("restart", "restart"),
    "stale_giveup": (7, "7"),
    "window_bytes": (7, "7"),
    "event_bytes_max": (7, "7"),
}


@pytest.fixture(params=list(knobs.FORMS))
def field(request):
    return request.param


@pytest.mark.parametrize("which", [0, -1])
def test_sources_are_asked_in_their_order(field, which):
    value, text = SAMPLES.get(field, (7.0, "7"))
    variable = knobs.names_of(field)[which]
    policy = Policy(**{field: value})
    asked = request(msgspec.structs.replace(CLOUD, policy=policy))

    def origin(*args, **environ):
        found = resolved(*args, **environ)[field]
        assert found.value == value
        return found.origin

    settings = Settings(policy=policy)
    environ = {variable: text}
    assert origin(policy, asked, settings, **environ) == "Policy"
    assert origin(None, asked, settings, **environ) == "endpoint's policy"
    assert origin(None, None, settings, **environ) == "Settings"
    assert origin(None, None, None, **environ) == variable


def test_stronger_source_wins_with_its_own_value():
    found = resolved(Policy(retries=1), None, Settings(policy=Policy(retries=2, stale_giveup=3)))

    assert found["retries"] == (1, "Policy")
    assert found["stale_giveup"] == (3, "Settings")


def test_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("TIDEGATE_STREAM_RETRIES", "4")

    assert Policy().resolved(request())["retries"] == (4, "TIDEGATE_STREAM_RETRIES")


def test_stronger_variable_wins_and_the_weaker_one_is_asked_when_it_is_blank():
    both = {"TIDEGATE_RETRIES": "3"}

    found = resolved(None, None, **both, TIDEGATE_STREAM_RETRIES="4")
    assert found["retries"] == (4, "TIDEGATE_STREAM_RETRIES")
    found = resolved(None, None, **both, TIDEGATE_STREAM_RETRIES=" ")
    assert found["retries"] == (3, "TIDEGATE_RETRIES")


def test_stale_variable_of_the_field_is_for_attempts_without_streaming_too():
    field, plain = "TIDEGATE_STALE_AFTER_S", "TIDEGATE_API_CALL_STALE_TIMEOUT"

    assert resolved(None, None, **{field: "7"})["plain_stale_after_s"] == (7.0, field)
    assert resolved(None, None, **{field: "7", plain: "8"})["plain_stale_after_s"] == (8.0, plain)
    found = resolved(None, None, TIDEGATE_STREAM_STALE_TIMEOUT="7")
    assert found["plain_stale_after_s"].value == 90


def test_stale_number_is_used_exactly_below_every_floor():
    asked = request(model="o1")

    assert resolved(Policy(stale_after_s=0.5), asked)["stale_after_s"] == (0.5, "Policy")
    assert resolved(None, asked, TIDEGATE_STREAM_STALE_TIMEOUT="5")["stale_after_s"].value == 5
    assert resolved(None, asked)["stale_after_s"] == (600.0, "floor 600 for o1")


def test_local_endpoint_has_its_own_budget_and_variable():
    local = "TIDEGATE_LOCAL_STREAM_STALE_TIMEOUT"

    assert resolved(None, request(NEAR))["stale_after_s"] == (900.0, "built-in: local endpoint")
    assert resolved(None, request(NEAR), **{local: "1200"})["stale_after_s"] == (1200.0, local)
    assert resolved(None, request(CLOUD), **{local: "1200"})["stale_after_s"].value == 180
    both = resolved(None, request(NEAR), TIDEGATE_STREAM_STALE_TIMEOUT="60", **{local: "1200"})
    assert both["stale_after_s"] == (60.0, "TIDEGATE_STREAM_STALE_TIMEOUT")


def test_address_from_the_environment_decides_what_is_local():
    asked = request(Endpoint.chat())

    assert resolved(None, asked)["stale_after_s"].value == 180
    found = resolved(None, asked, OPENAI_BASE_URL="http://localhost:1/v1")
    assert found["stale_after_s"].value == 900


def test_long_context_raises_the_budget():
    asked = Request(CLOUD, {"messages": [{"role": "user", "content": "x" * 400_100}]})

    assert resolved(None, asked)["stale_after_s"] == (300.0, "context over 100000 tokens")


def test_alive_and_first_event_follow_the_stale_budget():
    short = resolved(Policy(stale_after_s=10))
    long = resolved(Policy(stale_after_s=1_000))

    assert short["first_event_timeout_s"] == (10, "stale budget: Policy")
    assert short["alive_timeout_s"] == (120.0, "built-in")
    assert long["alive_timeout_s"] == (1_000, "stale budget: Policy")
    assert resolved(Policy(stale_after_s=10, alive_timeout_s=5))["alive_timeout_s"].value == 5


def test_first_event_of_the_responses_wire_has_rules_of_its_own():
    name = "first_event_timeout_s"
    asked = Request(Endpoint.responses("https://api.example.com"), {"input": "x" * 40_000})
    short, local = request(asked.endpoint), request(Endpoint.responses("http://localhost:1"))
    limit = {"TIDEGATE_CODEX_TTFB_TIMEOUT_SECONDS": "30"}
    exact = {"TIDEGATE_FIRST_EVENT_TIMEOUT_S": "7"}

    assert resolved(None, short)[name] == (120, "built-in: responses")
    assert resolved(None, short, **limit)[name] == (30, "TIDEGATE_CODEX_TTFB_TIMEOUT_SECONDS")
    assert resolved(None, asked, **limit)[name] == (180, "context of 10000 tokens or more")
    assert resolved(None, asked, **limit, **exact)[name] == (7, "TIDEGATE_FIRST_EVENT_TIMEOUT_S")
    assert resolved(None, local, **limit)[name].value == 900
    assert resolved(Policy(first_event_timeout_s=5), asked, **limit)[name] == (5, "Policy")


def test_attempt_without_streaming_has_limits_of_its_own():
    values = resolved(Policy(first_event_timeout_s=3)).values()

    assert values.limits(stream=True) == Limits(3, 180.0, 180.0)
    assert values.limits(stream=False) == Limits(90.0, 90.0, 90.0)


def test_first_event_limit_of_a_request_that_does_not_stream_is_meant():
    values = resolved(Policy(first_event_timeout_s=3), request(stream=False)).values()

    assert values.limits(stream=False) == Limits(3, 90.0, 90.0)


def test_stale_number_holds_without_streaming_too_and_the_variable_does_not():
    plain = "plain_stale_after_s"

    assert resolved(Policy(stale_after_s=7))[plain] == (7, "Policy")
    assert resolved(None, None, TIDEGATE_STREAM_STALE_TIMEOUT="7")[plain].value == 90
    variable = "TIDEGATE_API_CALL_STALE_TIMEOUT"
    assert resolved(None, None, **{variable: "7"})[plain] == (7.0, variable)
    assert resolved(None, request(NEAR))[plain].value is None


def test_endless_deadline_takes_a_deadline_away():
    settings = Settings(policy=Policy(deadline_s=60))

    assert resolved(None, None, settings)["deadline_s"] == (60, "Settings")
    assert resolved(Policy(deadline_s=math.inf), None, settings)["deadline_s"] == (None, "Policy")


@pytest.mark.parametrize(
    "given",
    [
        {"retries": -1},
        {"retries": (1 << 53) + 1},
        {"retries": True},
        {"retries": 1.0},
        {"retries": "2"},
        {"backoff_s": ()},
        {"backoff_s": [1]},
        {"backoff_s": (1, -1)},
        {"backoff_s": (math.inf,)},
        {"backoff_jitter": 1.1},
        {"backoff_jitter": False},
        {"retry_after_cap_s": -1},
        {"connect_timeout_s": 0},
        {"first_event_timeout_s": math.nan},
        {"stale_after_s": math.inf},
        {"stale_after_s": "180"},
        {"alive_timeout_s": -5},
        {"deadline_s": 0},
        {"deadline_s": math.nan},
        {"finish_grace_s": -0.1},
        {"kill_grace_s": math.inf},
        {"stale_giveup": -1},
        {"giveup_cooldown_s": True},
        {"after_visible_text": "maybe"},
        {"window_bytes": 0},
        {"event_bytes_max": 1.5},
        {"event_bytes_max": (1 << 26) + 1},
    ],
)
def test_value_out_of_range_is_refused_by_name_value_and_form(given):
    ((name, value),) = given.items()

    with pytest.raises(ConfigurationError) as caught:
        Policy(**given)

    assert f"{name}={value!r}" in str(caught.value)
    assert knobs.FORMS[name].wanted in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"retries": 0},
        {"backoff_s": (0,)},
        {"backoff_jitter": 0},
        {"backoff_jitter": 1},
        {"retry_after_cap_s": 0},
        {"finish_grace_s": 0},
        {"kill_grace_s": 0},
        {"stale_giveup": 0},
        {"giveup_cooldown_s": 0},
        {"window_bytes": 1},
    ],
)
def test_value_at_the_edge_of_its_range_is_taken(given):
    ((name, value),) = given.items()

    assert getattr(Policy(**given), name) == value


@pytest.mark.parametrize(
    "given",
    [
        {"workers": 0},
        {"workers": True},
        {"worker_restarts_max": -1},
        {"worker_restarts_max": None},
        {"worker_restarts_period_s": 0},
        {"preload": "messages"},
        {"preload": ("messages", "smoke signals")},
        {"preload": ([],)},
        {"policy": None},
        {"policy": {}},
    ],
)
def test_settings_out_of_range_are_refused_by_name(given):
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        Settings(**given)


def test_settings_have_defaults():
    assert Settings() == Settings(
        policy=Policy(),
        workers=None,
        worker_restarts_max=5,
        worker_restarts_period_s=30.0,
        preload=("chat",),
    )
    assert Settings(workers=3).workers == 3


def test_policy_survives_being_stored():
    policy = Policy(retries=1, backoff_s=(1.0,))
    body = msgspec.json.encode(policy)

    assert body == b'{"retries":1,"backoff_s":[1.0]}'
    assert msgspec.json.decode(body, type=Policy) == policy


def test_misspelled_field_of_a_stored_policy_is_refused():
    with pytest.raises(msgspec.ValidationError, match="retrys"):
        msgspec.convert({"retrys": 1}, Policy)


def test_resolution_prints_every_value_with_its_origin():
    found = resolved(Policy(retries=1))
    lines = str(found).splitlines()

    assert [line.split()[0] for line in lines] == list(found)
    assert len(lines) == len(found)
    assert lines[0].split() == ["retries", "1", "Policy"]


def test_values_keep_their_origins():
    origins = dict(resolved(Policy(retries=1)).values().origins)

    assert origins["retries"] == "Policy"
    assert origins["stale_after_s"] == "built-in"


def test_what_is_preloaded_serves_the_wires_that_are_named():
    chat, both = preload_of(("chat",)), preload_of(("messages", "chat"))

    assert set(both) - set(chat) == {"tidegate.actors.provider.anthropic_client"}
    assert preload_of(("chat", "responses")) == chat
    assert set(preload_of(())) < set(chat)
