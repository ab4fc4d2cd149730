"""What a reload changes, and what waits for a restart."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tidegate.daemon.config.keys import DAEMON_KEYS
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig
from tidegate.daemon.config.reload import Changes, changes, reloaded
from tidegate.errors import ConfigurationError


def config(**fields):
    return DaemonConfig(**fields)


def chat(**fields):
    return EndpointConfig(wire="chat", **fields)


def test_what_can_be_applied_and_what_cannot_is_told_by_name():
    old = config(endpoints={"a": chat(), "b": chat()}, policy=tg.Policy(retries=1))
    new = config(
        listen="127.0.0.1:9",
        heartbeat_s=1,
        journal="none",
        drain_s=1,
        endpoints={
            "a": chat(api_key="env:A", policy=tg.Policy(retries=2)),
            "c.d": chat(),
        },
        policy=tg.Policy(stale_after_s=1),
    )

    assert changes(old, new) == Changes(
        applied=(
            "heartbeat_s",
            "drain_s",
            "endpoints.a.api_key",
            "endpoints.a.policy.retries",
            "endpoints.b",
            'endpoints."c.d"',
            "policy.retries",
            "policy.stale_after_s",
        ),
        needs_restart=("listen", "journal"),
    )


def test_order_of_the_endpoints_is_a_change():
    old = config(endpoints={"a": chat(), "b": chat()})
    new = config(endpoints={"b": chat(), "a": chat()})
    more = config(endpoints={"c": chat(), "a": chat(), "b": chat()})

    assert changes(old, new) == Changes(("endpoints",), ())
    assert changes(old, more) == Changes(("endpoints.c",), ())
    assert changes(new, more) == Changes(("endpoints.c", "endpoints"), ())


def test_what_needs_a_restart_stays_as_it_was():
    old = config(listen="127.0.0.1:1", heartbeat_s=1, workers=2)
    new = config(listen="127.0.0.1:2", heartbeat_s=2)

    held, told = reloaded(old, new)

    assert held == config(listen="127.0.0.1:1", heartbeat_s=2, workers=2)
    assert told == changes(old, new)


def test_daemon_that_others_can_reach_does_not_lose_its_keys():
    old = config(listen="0.0.0.0:1", keys=["env:A"])

    with pytest.raises(ConfigurationError, match=r"'0\.0\.0\.0:1' can be reached from other mach"):
        reloaded(old, config())


CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "listen": st.sampled_from(["127.0.0.1:1", "[::1]:2"]),
        "journal": st.sampled_from(["none", "a.db"]),
        "heartbeat_s": st.integers(1, 3),
        "keys": st.lists(st.sampled_from(["env:A", "env:B"])),
        "workers": st.sampled_from([None, 1]),
        "endpoints": st.dictionaries(
            st.sampled_from("abc"),
            st.sampled_from([chat(), chat(region=None, models=["x"])]),
            min_size=1,
        ),
        "policy": st.sampled_from([tg.Policy(), tg.Policy(retries=1)]),
    },
).map(lambda fields: DaemonConfig(**fields))


@given(CONFIGS, CONFIGS)
def test_reload_ends_where_a_restart_would_but_for_what_it_names(old, new):
    held, told = reloaded(old, new)

    left = changes(held, new)
    assert left == Changes((), told.needs_restart)
    assert changes(held, held) == Changes((), ())
    waiting = {name: getattr(new, name) for name, key in DAEMON_KEYS.items() if not key.live}
    assert msgspec.structs.replace(held, **waiting) == new
    same = held == old and [*held.endpoints] == [*old.endpoints]
    assert same is (told.applied == ())
