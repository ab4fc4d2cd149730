"""Ranges and variables of the settings."""

import re
from pathlib import Path

import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs
from tidegate.protocol.budget import FirstEventRules


PAGE = Path(__file__).parents[3] / "docs" / "policy.md"
TTFB = "TIDEGATE_CODEX_TTFB_"


def test_each_field_has_a_variable_of_its_name_and_some_a_stronger_one():
    named = {name: knobs.variables(name, wire="chat", local=False) for name in knobs.FORMS}

    assert named["retries"] == ("TIDEGATE_STREAM_RETRIES", "TIDEGATE_RETRIES")
    assert named["stale_after_s"][0] == "TIDEGATE_STREAM_STALE_TIMEOUT"
    assert named["alive_timeout_s"][0] == "TIDEGATE_STREAM_READ_TIMEOUT"
    assert named["stale_giveup"][0] == "TIDEGATE_STREAM_STALE_GIVEUP"
    assert named["deadline_s"] == ("TIDEGATE_DEADLINE_S",)
    for name, variables in named.items():
        assert variables[-1] == f"TIDEGATE_{name.upper()}"
    assert len({each for variables in named.values() for each in variables}) == len(named) + 4


def test_page_tells_of_each_variable_that_has_not_the_name_of_its_field():
    named = set(re.findall(r"TIDEGATE_[A-Z]\w+", PAGE.read_text()))
    fields = {knobs.names_of(name)[-1] for name in knobs.FORMS}
    others = {each for each in knobs.VARIABLES if not each.startswith(TTFB)} - fields

    assert others <= named <= {*knobs.VARIABLES}


def test_local_stale_variable_comes_last_and_never_on_converse():
    usual = ("TIDEGATE_STREAM_STALE_TIMEOUT", "TIDEGATE_STALE_AFTER_S")
    local = (*usual, "TIDEGATE_LOCAL_STREAM_STALE_TIMEOUT")

    assert knobs.variables("stale_after_s", wire="chat", local=True) == local
    assert knobs.variables("stale_after_s", wire="converse", local=True) == usual


@pytest.mark.parametrize(
    ("variables", "changed"),
    [
        ({}, {}),
        (
            {"TIMEOUT_SECONDS": "30"},
            {"seconds": 30.0, "origin": "TIDEGATE_CODEX_TTFB_TIMEOUT_SECONDS"},
        ),
        ({"DISABLE_ABOVE_TOKENS": "500"}, {"long_context": 500}),
        ({"DISABLE_ABOVE_TOKENS": "500", "STRICT": "1"}, {"long_context": 0}),
        ({"STRICT": "0", "MAX_SECONDS": "90.5"}, {"ceiling_s": 90.5}),
    ],
)
def test_variables_about_the_first_event_of_the_responses_wire(variables, changed):
    environ = {f"{TTFB}{tail}": text for tail, text in variables.items()}

    assert knobs.first_event_rules(environ, wire="responses") == FirstEventRules(**changed)
    assert knobs.first_event_rules(environ, wire="chat") == FirstEventRules()


@pytest.mark.parametrize(
    ("tail", "text"),
    [("TIMEOUT_SECONDS", "-1"), ("STRICT", "yes"), ("MAX_SECONDS", "inf")],
)
def test_variable_about_the_first_event_is_refused_by_its_name(tail, text):
    with pytest.raises(ConfigurationError, match=f"{TTFB}{tail}='{text}': give "):
        knobs.first_event_rules({f"{TTFB}{tail}": text}, wire="responses")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retries", "3", 3),
        ("stale_after_s", " 12.5 ", 12.5),
        ("backoff_s", "1, 2,4", (1.0, 2.0, 4.0)),
        ("after_visible_text", "restart", "restart"),
        ("retries", "", None),
        ("retries", "  ", None),
    ],
)
def test_variable_is_read(name, text, value):
    assert knobs.read({"V": text}, "V", knobs.FORMS[name]) == value


def test_variable_that_is_not_set_gives_nothing():
    assert knobs.read({}, "V", knobs.FORMS["retries"]) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retries", "three"),
        ("retries", "1.5"),
        ("retries", "-1"),
        ("stale_after_s", "0"),
        ("stale_after_s", "nan"),
        ("stale_after_s", "inf"),
        ("backoff_s", "1,,2"),
        ("backoff_jitter", "2"),
        ("after_visible_text", "maybe"),
    ],
)
def test_variable_that_does_not_fit_is_refused_by_name_value_and_form(name, text):
    with pytest.raises(ConfigurationError) as caught:
        knobs.read({"TIDEGATE_X": text}, "TIDEGATE_X", knobs.FORMS[name])

    assert "TIDEGATE_X" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert knobs.FORMS[name].wanted in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "none"), (1.0, "1"), (0.25, "0.25"), ((1.0, 2), "1, 2"), ("stop", "stop"), (5, "5")],
)
def test_value_is_shown(value, text):
    assert knobs.shown(value) == text
