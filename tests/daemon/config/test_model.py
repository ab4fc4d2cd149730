"""Which values the keys take, and what the daemon makes of them."""

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.daemon.config import keys, kinds, sources
from tidegate.daemon.config.disconnect import CONTINUE
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig
from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs


@pytest.mark.parametrize(
    ("struct", "known", "others"),
    [
        (DaemonConfig, keys.DAEMON_KEYS, {"endpoints", "policy"}),
        (EndpointConfig, keys.ENDPOINT_KEYS, {"policy"}),
        (tg.Policy, keys.POLICY_KEYS, set()),
    ],
)
def test_each_field_is_a_key_and_each_key_a_field(struct, known, others):
    assert [name for name in struct.__struct_fields__ if name not in others] == [*known]


def test_no_variable_has_two_meanings():
    ours = {f"TIDEGATE_{name.upper()}" for name in keys.DAEMON_KEYS}

    assert not ours & {*knobs.VARIABLES, *sources._OTHERS}


VALUES = {
    "listen": (
        ["127.0.0.1:0", "[::1]:8765", "localhost:1", "gate.lan:65535"],
        [":80", "::1:80", "[x]:80", "a:65536", "a:-1", "a", "a:", "a b:1", "a:\u0661", "[::1]", 80],
    ),
    "keys": ([[], ["env:A_1", "file:/run/key"]], ["env:A", ["sk"], ["env:"], ["env:1"], [5]]),
    "hosts": (
        [["gate.lan", "10.0.0.1"]],
        [["http://a"], ["a:80"], [""], ["a/b"], "gate.lan", [5]],
    ),
    "cors_origins": (
        [["https://a.example", "http://localhost:3000", "http://[::1]:1", "tauri://localhost"]],
        [
            *(["*"], ["null"], ["https://a/"], ["https://A"], ["https://a:443"], ["a.example"]),
            *(
                ["https://u@a"],
                ["https://a?b"],
                ["http://a:0"],
                ["http://"],
                ["http://\u00e9"],
                [5],
            ),
        ],
    ),
    "journal": (["none", "/var/lib/t.db"], ["", 5, "a\nb", None]),
    "journal_sync": (["normal", "full"], ["off", "", None]),
    "journal_bytes_max": ([1 << 20], [(1 << 20) - 1, 1e9, True]),
    "heartbeat_s": ([0.1, 15], [0, -1, float("nan"), float("inf"), True, "15", None]),
    "commit_after_s": ([0, 5], [-1, "5"]),
    "client_queue_bytes": ([1], [0, 1.5]),
    "max_queued": ([0], [-1, 1 << 60]),
    "max_running": ([1], [0]),
    "notices": ([True, False], [1, "true", None]),
    "workers": ([None, 1], [0, True, 1.0]),
    "preload": ([None, [], ["chat", "converse"]], [["local"], ["custom"], "chat"]),
    "log_format": (["text", "json"], ["xml"]),
    "log_level": (["debug", "error"], ["INFO", 10]),
    "on_disconnect": (["interrupt", "continue:3", CONTINUE], ["stop", 3, None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_each_key_takes_what_it_should_and_refuses_the_rest(name):
    good, bad = VALUES[name]
    others = {"keys": ["env:A"]} if name == "listen" else {}
    for value in good:
        config = DaemonConfig(**{name: value}, **others)
        again = msgspec.structs.replace(config)
        assert getattr(again, name) == getattr(config, name)
    for value in bad:
        with pytest.raises(ConfigurationError, match=f"^{name}"):
            DaemonConfig(**{name: value}, **others)


@pytest.mark.parametrize(
    ("listen", "near"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("LocalHost:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("localhost.example:1", False),
        ("127.1:1", False),
        ("0:1", False),
    ],
)
def test_without_a_key_nobody_else_can_reach_it(listen, near):
    assert DaemonConfig(listen=listen, keys=["env:A"]).is_loopback is near
    if near:
        DaemonConfig(listen=listen)
        return
    with pytest.raises(ConfigurationError, match=r"keys is empty: give keys = \['env:TIDEGATE_K"):
        DaemonConfig(listen=listen)


def test_host_and_port_are_for_a_socket():
    config = DaemonConfig(listen="[::1]:8765")

    assert (config.host, config.port) == ("::1", 8765)


def test_journal_is_a_file_or_none(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")

    assert DaemonConfig(journal="none").journal_path is None
    assert DaemonConfig().journal_path == Path("tidegate.db")
    assert DaemonConfig(journal="~/t.db").journal_path == Path("/home/somebody/t.db")


def test_runtime_has_the_wires_of_the_endpoints():
    config = DaemonConfig(
        workers=3,
        endpoints={
            "a": EndpointConfig(wire="messages"),
            "b": EndpointConfig(wire="chat"),
            "c": EndpointConfig(wire="messages"),
        },
    )

    assert config.settings == tg.Settings(workers=3, preload=("messages", "chat"))
    assert DaemonConfig().settings.preload == ("chat", "responses", "messages")
    assert DaemonConfig(preload=[]).settings.preload == ()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"policy": {}}, "policy"),
        ({"endpoints": {}}, "at least one"),
        ({"endpoints": {"a": {}}}, "EndpointConfig"),
        ({"endpoints": {" a": EndpointConfig(wire="local")}}, "' a' cannot be a name"),
        ({"endpoints": {"a\n": EndpointConfig(wire="local")}}, "cannot be a name"),
        ({"endpoints": {"a" * 65: EndpointConfig(wire="local")}}, "cannot be a name"),
    ],
)
def test_what_is_no_configuration_is_refused(fields, named):
    with pytest.raises(ConfigurationError, match=named):
        DaemonConfig(**fields)


ALL_KEYS = [
    pair
    for known in (keys.DAEMON_KEYS, keys.ENDPOINT_KEYS, keys.POLICY_KEYS)
    for pair in known.items()
]


def refused(value):
    """The keys that refuse a value, and what they say; those that take it keep what they kept."""
    texts = {}
    for name, key in ALL_KEYS:
        try:
            taken = keys.read(name, key, value)
        except ConfigurationError as error:
            texts[name] = str(error)
        else:
            assert keys.read(name, key, taken) == taken
    return texts


@given(st.integers() | st.floats() | st.text() | st.booleans() | st.none() | st.lists(st.text()))
def test_whatever_is_given_is_taken_or_refused_by_its_name(value):
    assert all(text.startswith(name) for name, text in refused(value).items())


@given(st.text())
def test_text_of_a_variable_is_parsed_or_refused(text):
    for name, key in ALL_KEYS:
        with contextlib.suppress(ValueError):
            keys.read(name, key, key.kind.parse(text))


def test_a_flag_in_a_variable_is_said_in_words():
    assert [kinds.FLAG.parse(word) for word in ("true", "Yes", "0", "OFF")] == [True, True, 0, 0]
