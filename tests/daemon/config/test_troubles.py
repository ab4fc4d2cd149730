"""What will go wrong at an endpoint, said before its first turn."""

import os

import pytest

from tidegate.daemon.config.model import EndpointConfig
from tidegate.daemon.config.troubles import troubles_of
from tidegate.lab.tls import write_credentials


@pytest.fixture
def troubles():
    """What is said of an endpoint that has its key from its headers, or needs none."""

    def make(wire="chat", environ=(), base_url="http://127.0.0.1:1", **fields):
        endpoint = EndpointConfig(wire=wire, base_url=base_url, **fields)
        return [*troubles_of(endpoint, dict(environ))]

    return make


@pytest.fixture
def authority(tmp_path):
    return write_credentials(tmp_path)[0]


def test_certificates_that_are_there_are_no_trouble(troubles, authority, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert troubles(verify=str(authority)) == []
    assert troubles(verify=f"~/{authority.name}") == []
    assert troubles(verify=False) == []


def test_file_without_certificates_is_told(troubles, tmp_path):
    (tmp_path / "empty.pem").write_text("no certificate")
    wanted = "give a file of PEM certificates"

    assert troubles(verify=f"{tmp_path}/none.pem") == [
        f"verify='{tmp_path}/none.pem': No such file or directory: {wanted}"
    ]
    assert troubles(verify=f"{tmp_path}/empty.pem") == [
        f"verify='{tmp_path}/empty.pem': it holds no certificate: {wanted}"
    ]
    assert troubles(verify="~nobody-of-that-name/ca.pem") == [
        f"verify='~nobody-of-that-name/ca.pem': No such file or directory: {wanted}"
    ]


def test_folder_without_certificates_is_told(troubles, authority, tmp_path):
    assert troubles(verify=str(tmp_path)) == [
        f"verify='{tmp_path}': the folder has no hashed names: run `openssl rehash` there"
    ]
    (tmp_path / "0123abcd.0").symlink_to(authority)
    assert troubles(verify=str(tmp_path)) == []


def test_all_that_is_missing_of_one_endpoint_is_told(troubles, tmp_path):
    told = troubles(
        api_key="file:/none",
        verify="/none.pem",
        headers={"x-team": "env:TEAM", "x-api-key": f"file:{tmp_path}/key", "x-plain": "env: a b"},
    )

    assert [text.split(":")[0] for text in told] == [
        "verify='/none.pem'",
        "headers['x-team']",
        "headers['x-api-key']",
        "the key file '/none' cannot be read (No such file or directory)",
    ]
    assert (
        told[1] == "headers['x-team']: the environment variable TEAM is not set: set it to the key"
    )


def test_header_that_is_missing_is_told_once(troubles):
    assert len(troubles(headers={"authorization": "env:TEAM"})) == 1


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "x-api-key",
        "api-key",
        "x-token",
        "x-auth-token",
        "x-api-token",
        "Cookie",
        "Ocp-Apim-Subscription-Key",
    ],
)
def test_secret_in_the_file_is_told_and_not_shown(troubles, name):
    [told] = troubles(headers={name: "Bearer sk-secret", "x-team": "blue"})
    assert told == (
        f"headers[{name!r}] has a secret in the file: put its whole value into a variable or a "
        "file, and give 'env:NAME' or 'file:PATH'"
    )
    assert troubles(headers={name: "env:KEY"}, environ={"KEY": "Bearer sk-secret"}) == []


@pytest.mark.parametrize("name", ["key", "api-key", "api_key", "access_token"])
def test_secret_in_the_query_is_told_and_not_shown(troubles, name):
    [told] = troubles(query={name: "sk-secret", "api-version": "1"})
    assert told == (
        f"query[{name!r}] has a secret in the file: if the server takes it in a header too, give "
        "it there as 'env:NAME' or 'file:PATH'"
    )


@pytest.mark.parametrize("name", ["authorization", "x-team"])
def test_reference_that_is_misspelt_is_told(troubles, name):
    [told] = troubles(headers={name: "${TOKEN}"})
    assert told == (
        f"headers[{name!r}] is sent as it stands, though it looks like a reference: if it is meant "
        "as one, give 'env:NAME' or 'file:PATH'"
    )


@pytest.mark.parametrize("held", ["env:OTHER", "file:/other"])
def test_reference_in_the_place_of_a_key_is_told(troubles, tmp_path, held):
    (tmp_path / "key").write_text(held)

    [told] = troubles(api_key=f"file:{tmp_path}/key")
    assert told.endswith("holds a reference and no key: put the key into it")
    [told] = troubles(api_key="env:KEY", environ={"KEY": held})
    assert told.endswith("holds a reference and no key: set it to the key")


def test_proxy_of_the_environment_that_speaks_something_else_is_told(troubles, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "socks5://me:secret@proxy:1080")

    [told] = troubles(base_url="http://api.test/v1")
    assert told.startswith("the environment's proxy socks5://proxy:1080 is no HTTP proxy: give")
    assert troubles(base_url="http://api.test/v1", proxy="http://proxy:3128") == []
    assert troubles(base_url="http://127.0.0.1:1/v1") == []


def test_pipe_is_no_file_of_certificates_and_is_not_waited_for(troubles, tmp_path):
    os.mkfifo(tmp_path / "ca.pem")

    [told] = troubles(verify=f"{tmp_path}/ca.pem")
    assert "it is no regular file" in told


def test_version_in_the_address_of_the_messages_wire_is_doubted(troubles):
    [told] = troubles("messages", base_url="http://127.0.0.1:1/v1/")
    assert told == (
        "base_url='http://127.0.0.1:1/v1': requests go to http://127.0.0.1:1/v1/v1/messages: "
        "unless that is meant, give 'http://127.0.0.1:1'"
    )
    [told] = troubles("messages", base_url="http://127.0.0.1:1/messages")
    assert told == (
        "base_url='http://127.0.0.1:1/messages': requests go to "
        "http://127.0.0.1:1/messages/v1/messages: unless that is meant, give 'http://127.0.0.1:1'"
    )
    assert troubles("messages") == []
    assert troubles("chat", base_url="http://127.0.0.1:1/v1") == []
    vertex = {"region": "us-east5", "project": "p", "base_url": "http://127.0.0.1:1/v1"}
    assert troubles("messages", **vertex) == []


def test_profile_that_is_not_there_is_told(troubles):
    nowhere = {"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}

    assert troubles("converse", environ=nowhere, region="eu-west-1", profile="team") == [
        "profile='team': there is none in '/none' and '/none': name another one"
    ]
    assert troubles("converse", environ=nowhere, region="eu-west-1") == []
