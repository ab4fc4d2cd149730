"""Keys that do not show themselves."""

import copy
import dataclasses
import pickle

import msgspec
import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import MissingKey, Secret


LITERAL = "sk-very-secret"


def test_literal_is_masked_wherever_it_is_written():
    secret = Secret(LITERAL)

    written = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr([secret])]
    assert not any(LITERAL in text for text in written)


def test_reference_is_no_secret():
    secret = Secret("env:KEY")

    assert str(secret) == "env:KEY"
    assert repr(secret) == "Secret('env:KEY')"
    assert secret.is_reference
    assert not Secret(LITERAL).is_reference


@pytest.mark.parametrize(
    "leave",
    [
        pickle.dumps,
        msgspec.json.encode,
        msgspec.msgpack.encode,
        msgspec.to_builtins,
        dataclasses.asdict,
    ],
)
def test_literal_does_not_leave_the_process(leave):
    with pytest.raises(ConfigurationError, match="env:NAME") as caught:
        leave(Secret(LITERAL))

    assert LITERAL not in str(caught.value)


def test_reference_pickles():
    assert pickle.loads(pickle.dumps(Secret("env:KEY"))) == Secret("env:KEY")


def test_secret_compares_and_hashes_by_value():
    assert Secret(LITERAL) == Secret(LITERAL)
    assert Secret(LITERAL) != Secret("other")
    assert Secret(LITERAL) != LITERAL
    assert len({Secret(LITERAL), Secret(LITERAL), Secret("env:KEY")}) == 2


def test_secret_copies_as_itself():
    secret = Secret(LITERAL)

    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_secret_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Secret(LITERAL)._source = "other"


def test_literal_reveals_itself():
    assert Secret(LITERAL).reveal({}) == LITERAL


def test_reference_reveals_what_the_variable_holds():
    assert Secret("env:KEY").reveal({"KEY": "sk-1\n"}) == "sk-1"


@pytest.mark.parametrize(
    "held", [None, "", "  ", "a\nb", "env:KEY", "env:OTHER", "file:/run/secrets/key"]
)
def test_reference_to_nothing_useful_says_so(held):
    with pytest.raises(MissingKey, match="the environment variable KEY"):
        Secret("env:KEY").reveal({} if held is None else {"KEY": held})


@pytest.mark.parametrize("source", ["", "env:", "sk-1\n", "sk-\x00", "clé", 5, None, b"sk"])
def test_text_that_cannot_be_a_key_is_refused_without_being_shown(source):
    with pytest.raises(ConfigurationError) as caught:
        Secret(source)

    assert "sk-" not in str(caught.value)
