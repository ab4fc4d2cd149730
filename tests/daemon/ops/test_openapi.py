"""The API's description holds together, and says what can really happen."""

import json
from types import SimpleNamespace

import msgspec
import pytest

import tidegate as tg
from tidegate.daemon.access import Keys, RateLimit, Rules
from tidegate.daemon.access.rules import Denied, Facts, decide
from tidegate.daemon.api.openapi import document
from tidegate.daemon.app import routes_of
from tidegate.protocol import events
from tidegate.protocol.failures import Failure, FailureKind


OPEN = document(SimpleNamespace(keys=(), is_loopback=True))
LOCKED = document(SimpleNamespace(keys=("env:KEY",), is_loopback=False))
LOCAL = document(SimpleNamespace(keys=("env:KEY",), is_loopback=True))
SERVICE = SimpleNamespace(metrics=None)  # its routes are counted, and none is asked
SCHEMAS = OPEN["components"]["schemas"]
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in OPEN["paths"].items()
    for method, operation in methods.items()
}
ANSWER = tg.Answer(text="hello")
FAILURE = Failure(kind=FailureKind.TRUNCATED)


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_it_is_json():
    assert json.loads(msgspec.json.encode(OPEN)) == json.loads(json.dumps(OPEN))


def test_each_reference_leads_somewhere():
    named = {reference.removeprefix("#/components/schemas/") for reference in references(OPEN)}

    assert named
    assert named <= set(SCHEMAS)


def test_each_route_is_described_and_nothing_else():
    known = {
        (method, path.replace(":path}", "}"))
        for path, methods in ((route.path, route.methods) for route in routes_of(SERVICE))
        for method in methods or {"POST"}  # a whole application is asked for nothing else
    }

    # Whatever is shown may be asked for without its body, too.
    assert set(OPERATIONS) == {(method, path) for method, path in known if method != "HEAD"}


def test_each_operation_has_a_name_of_its_own_and_all_parameters_of_its_path():
    assert len({each["operationId"] for each in OPERATIONS.values()}) == len(OPERATIONS)
    for (_, path), operation in OPERATIONS.items():
        given = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
        assert given == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_keys_are_asked_for_if_there_are_any_but_not_of_probes():
    assert OPEN["security"] == []
    named = [name for each in LOCKED["security"] for name in each]
    assert set(named) == set(LOCKED["components"]["securitySchemes"])
    for path in ("/livez", "/readyz"):
        assert LOCKED["paths"][path]["get"]["security"] == []


@pytest.mark.parametrize("path", ["/", "/metrics", "/page/page.js", "/openapi.json"])
def test_what_is_only_looked_at_asks_no_key_of_the_same_machine(path):
    assert {} in LOCAL["paths"][path]["get"]["security"]
    assert "security" not in LOCKED["paths"][path]["get"]
    assert "security" not in LOCAL["paths"]["/v1/turns"]["get"]


@pytest.mark.parametrize("asked", OPERATIONS, ids=str)
def test_whatever_the_door_answers_is_described(asked):
    method, path = asked
    host = (b"host", b"localhost")
    key = (b"x-api-key", b"k")
    rules = Rules(keys=Keys(["k"]), loopback=True)
    rate = RateLimit(1)
    rate.take(Keys(["k"]).owner("k"), 0.0)
    denied = [
        decide(Facts(method, path, headers), rules, rate, 0.0)
        for headers in (
            [],
            [host],
            [host, key],
            [host, key, (b"idempotency-key", b"")],
            [(b"host", b"evil.example"), key],
            [host, key, *[(b"x", b"v")] * 200],
        )
    ]
    statuses = {str(each.status) for each in denied if isinstance(each, Denied)}

    assert statuses >= {"400", "403", "431"}
    assert statuses <= set(OPERATIONS[asked]["responses"])


@pytest.mark.parametrize(
    "event",
    [
        events.AttemptStarted("turn_1", 1, 0, 1.0, 7),
        events.TextDelta("turn_1", 1, 0, 1.0, "hello", 1),
        events.ToolCallDelta("turn_1", 1, 0, 1.0, 0, "id", "name", "{}"),
        events.Notice("turn_1", 1, 0, 1.0, "tool_call_lost", "words"),
        events.RetryScheduled("turn_1", 1, 0, 1.0, FAILURE, 1.0),
        events.TurnCompleted("turn_1", 1, 0, 1.0, ANSWER),
        events.TurnFailed("turn_1", 1, 0, 1.0, FAILURE, ANSWER),
        events.TurnInterrupted("turn_1", 1, 0, 1.0, "a reason", ANSWER),
    ],
    ids=lambda event: type(event).__name__,
)
def test_event_has_what_its_schema_says(event):
    shown = json.loads(msgspec.json.encode(event))
    mapping = SCHEMAS["Event"]["discriminator"]["mapping"]
    schema = SCHEMAS[mapping[shown["type"]].rpartition("/")[2]]

    assert set(schema["required"]) <= set(shown) <= set(schema["properties"])


def test_policy_of_a_turn_is_described_by_its_fields():
    assert set(SCHEMAS["Policy"]["properties"]) == set(tg.Policy.__struct_fields__)
