"""Keys by reference: what they are, and what is said when they are not there."""

import os

import pytest

from tidegate.daemon.config.references import (
    FILE_BYTES_MAX,
    KeyFile,
    looks_like_reference,
    resolve_keys,
)
from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import MissingKey, Secret


def test_keys_come_from_variables_and_files(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("  from-a-file\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    references = ("env:A", f"file:{tmp_path}/key", "file:~/key")

    keys = resolve_keys(references, {"A": "from-a-variable\n"})

    assert [key.reveal({}) for key in keys] == ["from-a-variable", "from-a-file", "from-a-file"]
    assert {str(key) for key in keys} == {"***"}
    assert {repr(key) for key in keys} == {"Secret('***')"}


def test_all_that_is_missing_is_said_at_once(tmp_path):
    (tmp_path / "empty").write_text("\n")
    references = ("env:A", "env:B", f"file:{tmp_path}/none", f"file:{tmp_path}/empty")

    with pytest.raises(ConfigurationError) as raised:
        resolve_keys(references, {"B": " "})

    assert str(raised.value).split("; ") == [
        "keys: the environment variable A is not set: set it to the key",
        "the environment variable B is not set: set it to the key",
        (
            f"the key file '{tmp_path}/none' cannot be read (No such file or directory): put the "
            "key into it"
        ),
        f"the key file '{tmp_path}/empty' is empty: put the key into it",
    ]


@pytest.mark.parametrize("content", [b"one\ntwo", b"\xff", "k\u00e9y".encode(), b"a\x00b"])
def test_file_with_more_than_a_key_is_refused_and_not_shown(tmp_path, content):
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(MissingKey) as raised:
        KeyFile(str(tmp_path / "key"))()

    assert str(raised.value) == (
        f"the key file '{tmp_path}/key' has more in it than a key: put the key into it as one "
        "line of ASCII"
    )


def test_folder_is_no_key_file(tmp_path):
    with pytest.raises(MissingKey, match=r"cannot be read \(Is a directory\)"):
        KeyFile(str(tmp_path))()


def test_what_might_be_waited_for_is_no_key_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(MissingKey, match=r"cannot be read \(it is no regular file\)"):
            KeyFile(str(path))()


def test_file_that_is_too_large_for_a_key_is_refused_and_not_cut(tmp_path):
    (tmp_path / "key").write_text("k" * FILE_BYTES_MAX)
    assert KeyFile(str(tmp_path / "key"))() == "k" * FILE_BYTES_MAX

    (tmp_path / "key").write_text("k" * (FILE_BYTES_MAX + 1))
    with pytest.raises(MissingKey, match=r"cannot be read \(it has more than 65536 bytes\)"):
        KeyFile(str(tmp_path / "key"))()


@pytest.mark.parametrize("held", ["env:B", "file:/run/secrets/key"])
def test_reference_to_a_reference_is_no_key(tmp_path, held):
    (tmp_path / "key").write_text(held)

    with pytest.raises(ConfigurationError) as raised:
        resolve_keys(("env:A", f"file:{tmp_path}/key"), {"A": held})

    assert str(raised.value) == (
        "keys: the environment variable A holds a reference and no key: set it to the key; "
        f"the key file '{tmp_path}/key' holds a reference and no key: put the key into it"
    )


@pytest.mark.parametrize(
    "text",
    ["env:A-B", "env: FOO", "ENV:FOO", " env:FOO", "env:", "file:", "File:/a", "$FOO", "${FOO}"],
)
def test_reference_that_is_misspelt_looks_like_one(text):
    assert looks_like_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "env:FOO",
        "file:/a",
        "prod",
        "env:prod,team:blue",
        "environment: a",
        "costs $5 a day",
        "",
        "$",
    ],
)
def test_reference_and_any_other_text_does_not(text):
    assert not looks_like_reference(text)


def test_what_a_function_says_of_a_missing_key_is_said_as_it_stands(tmp_path):
    secret = Secret(KeyFile(str(tmp_path / "none")))

    with pytest.raises(MissingKey, match=r"^the key file"):
        secret.reveal({})


def test_same_file_is_the_same_key():
    assert Secret(KeyFile("/a")) == Secret(KeyFile("/a"))
    assert Secret(KeyFile("/a")) != Secret(KeyFile("/b"))
