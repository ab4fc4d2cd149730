"""What is said about a client that leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.daemon.config.disconnect import (
    CONTINUE,
    INTERRUPT,
    OnDisconnect,
    parse_on_disconnect,
)
from tidegate.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("interrupt", INTERRUPT),
        ("continue", CONTINUE),
        (" continue ", CONTINUE),
        ("continue:30", OnDisconnect(kind="continue", seconds=30.0)),
        ("continue:0.5", OnDisconnect(kind="continue", seconds=0.5)),
    ],
)
def test_what_is_said_is_understood(text, meant):
    assert parse_on_disconnect(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "Interrupt",
        "continue:",
        "continue:-1",
        "continue:1_0",
        "continue:nan",
        "continue:inf",
        "continue: 3",
        "continue:1e3",
        "continue:\u0663",
        "continue:" + "9" * 400,
        "interrupt:3",
        5,
        None,
    ],
)
def test_anything_else_is_refused_with_what_may_be_said(text):
    with pytest.raises(ConfigurationError, match="'interrupt', 'continue' or 'continue:SECONDS'"):
        parse_on_disconnect(text)


def test_no_time_at_all_is_an_interrupt_and_should_be_called_so():
    with pytest.raises(ConfigurationError, match="above 0, or say 'interrupt'"):
        parse_on_disconnect("continue:0.0")


def test_refusal_names_where_it_was_said_and_shows_no_more_than_needed():
    with pytest.raises(
        ConfigurationError, match=r"^tidegate-on-disconnect='xxx.*\.\.\.: give"
    ) as it:
        parse_on_disconnect("x" * 10_000, name="tidegate-on-disconnect")

    assert len(str(it.value)) < 200


@given(st.floats(0, exclude_min=True, allow_infinity=False) | st.integers(1, 10**9))
def test_what_was_understood_says_the_same_again(seconds):
    meant = OnDisconnect(kind="continue", seconds=float(seconds))

    assert parse_on_disconnect(str(meant)) == meant


def test_it_is_written_as_it_would_be_said():
    texts = ["interrupt", "continue", "continue:30", "continue:0.5"]

    assert [str(parse_on_disconnect(text)) for text in texts] == texts
