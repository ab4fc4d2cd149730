"""Keys: presented in three ways, compared by digests, and never shown."""

import base64

import pytest

from tidegate.daemon.access.keys import Keys, Presented, owner_of, presented_in
from tidegate.errors import ConfigurationError


def basic(text):
    return b"Basic " + base64.b64encode(text.encode())


@pytest.mark.parametrize(
    ("headers", "presented"),
    [
        ([(b"authorization", b"Bearer k1")], [Presented("k1")]),
        ([(b"authorization", b"bearer  k1 ")], [Presented("k1")]),
        ([(b"x-api-key", b"k1")], [Presented("k1")]),
        ([(b"authorization", basic("any:k1"))], [Presented("k1", by_browser=True)]),
        ([(b"authorization", basic(":k:1"))], [Presented("k:1", by_browser=True)]),
        (
            [(b"x-api-key", b"k1"), (b"authorization", b"Bearer k2")],
            [Presented("k1"), Presented("k2")],
        ),
        ([(b"authorization", b"Bearer")], []),
        ([(b"authorization", b"Basic %%%")], []),
        ([(b"authorization", basic("no colon"))], []),
        ([(b"authorization", b"Digest k1")], []),
        ([(b"x-api-key", b"")], []),
        ([(b"cookie", b"k1")], []),
        ([], []),
    ],
)
def test_keys_are_found_where_clients_put_them(headers, presented):
    assert presented_in(headers) == presented


def test_each_key_has_an_owner_of_its_own():
    keys = Keys(["first", "second"])

    assert keys.owner("first") == owner_of("first")
    assert keys.owner("second") == owner_of("second")
    assert owner_of("first") != owner_of("second")
    assert len(owner_of("first")) == 16


def test_owner_is_the_same_after_a_restart():
    assert owner_of("a key of nobody") == "0c575e034fa33df4"


@pytest.mark.parametrize("wrong", ["", "firs", "firstt", "FIRST", "first ", "\udcff"])
def test_other_keys_have_none(wrong):
    assert Keys(["first"]).owner(wrong) is None


def test_keys_may_be_of_any_characters():
    assert Keys(["schlüssel"]).owner("schlüssel") is not None


def test_nothing_of_a_key_is_kept_or_shown():
    keys = Keys(["secret-of-mine"])

    assert repr(keys) == "<Keys: 1>"
    assert "secret-of-mine" not in repr(keys._owners)
    assert "secret" not in owner_of("secret-of-mine")


def test_no_keys_are_false():
    assert not Keys()
    assert Keys(["k"])


def test_empty_key_is_refused():
    with pytest.raises(ConfigurationError, match="empty"):
        Keys(["k", ""])
