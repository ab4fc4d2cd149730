"""The configuration as the daemon has it: every value read, checked and with its default."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from tidegate.daemon.config import kinds
from tidegate.daemon.config.disconnect import INTERRUPT, OnDisconnect
from tidegate.daemon.config.keys import DAEMON_KEYS, ENDPOINT_KEYS, LOCAL_WIRES, MIB, Key, read
from tidegate.daemon.config.references import header_given, is_reference, key_given
from tidegate.errors import ConfigurationError
from tidegate.protocol.base import Record
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.wires import Wire


WireName: TypeAlias = Literal["chat", "responses", "messages", "converse", "local"]
NO_JOURNAL = "none"
DAY_S = 86_400.0
NAME_CHARACTERS_MAX = 64

_LOCAL_MODEL = "smollm2"
_LOCAL_KEYS = ("wire", "models", "local_model", "on_disconnect", "policy")
_OWN = ("wire", "models", "api_key", "on_disconnect")
_SHARED = tuple(name for name in ENDPOINT_KEYS if name not in _OWN)
"""The keys that are fields of a ``tidegate.Endpoint`` as they stand."""


class EndpointConfig(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table ``[endpoints.NAME]``; see ``keys.py`` for what the values mean.

    Lists and texts may be given as in the file; what is kept is what the annotations say.

    Raises:
        ConfigurationError: a value of the wrong kind, or one that no request could use.
    """

    wire: WireName
    models: tuple[str, ...] = ("*",)
    base_url: str | None = None
    api_key: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    organization: str | None = None
    project: str | None = None
    api_version: str | None = None
    proxy: str | None = None
    verify: bool | str = True
    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    local_model: str | None = None
    on_disconnect: OnDisconnect | None = None
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        _read_all(self, ENDPOINT_KEYS)
        if not isinstance(self.policy, Policy):
            raise ConfigurationError(f"policy={self.policy!r}: give a tidegate.Policy")
        self._check_local()
        self.on_wire(self.wires[0])

    def _check_local(self) -> None:
        if self.wire != "local":
            if self.local_model is not None:
                raise ConfigurationError(
                    f"local_model means nothing on the wire {self.wire!r}: say wire = 'local'"
                )
            return
        for name, default in _defaults(type(self)).items():
            given = getattr(self, name) not in (default, {})
            if given and name not in _LOCAL_KEYS:
                raise ConfigurationError(
                    f"{name} means nothing on the wire 'local', which is a model on this machine: "
                    "leave it out"
                )
        if self.local_model is None:
            msgspec.structs.force_setattr(self, "local_model", _LOCAL_MODEL)

    @property
    def wires(self) -> tuple[Wire, ...]:
        """The wires whose requests it takes."""
        return LOCAL_WIRES if self.wire == "local" else (self.wire,)

    @property
    def references(self) -> tuple[str, ...]:
        """Where its secrets are: the key, and what headers refer to."""
        key = () if self.api_key is None else (self.api_key,)
        return (*key, *(value for value in self.headers.values() if is_reference(value)))

    def on_wire(self, wire: Wire, policy: Policy | None = None) -> Endpoint:
        """Return the endpoint of the runtime.

        Args:
            wire: one of ``wires``.
            policy: in place of its own.

        Raises:
            ConfigurationError: no request could use it.
        """
        given = {name: getattr(self, name) for name in _SHARED}
        given["headers"] = {name: header_given(value) for name, value in self.headers.items()}
        if isinstance(self.verify, str):
            # A user that does not exist is no error here: the path is not there either.
            given["verify"] = os.path.expanduser(self.verify)  # noqa: PTH111
        key = None if self.api_key is None else key_given(self.api_key)
        return Endpoint(wire=wire, key_given=key, policy=policy or self.policy, **given)

    def __repr__(self) -> str:
        return f"<EndpointConfig {self.on_wire(self.wires[0]).label}>"


def _local() -> dict[str, EndpointConfig]:
    return {"local": EndpointConfig(wire="local")}


class DaemonConfig(Record, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All that the daemon is told; see ``keys.py`` for what the values mean.

    Lists and texts may be given as in the file; what is kept is what the annotations say. The
    order of the endpoints is that of the file: the first match is chosen.

    Raises:
        ConfigurationError: a value of the wrong kind, or an address that others can reach
            without a key.
    """

    listen: str = "127.0.0.1:8765"
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    journal: str = "tidegate.db"
    journal_sync: Literal["normal", "full"] = "normal"
    journal_keep_s: float = 7 * DAY_S
    journal_bytes_max: int = 1024 * MIB
    idempotency_keep_s: float = DAY_S
    on_disconnect: OnDisconnect = INTERRUPT
    heartbeat_s: float = 15.0
    commit_after_s: float = 5.0
    client_queue_bytes: int = MIB
    slow_client_timeout_s: float = 30.0
    body_bytes_max: int = 10 * MIB
    max_running: int = 256
    max_queued: int = 256
    rate_per_minute: int = 0
    notices: bool = True
    drain_s: float = 30.0
    workers: int | None = None
    preload: tuple[Wire, ...] | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    endpoints: Mapping[str, EndpointConfig] = msgspec.field(default_factory=_local)
    policy: Policy = Policy()

    def __post_init__(self) -> None:
        _read_all(self, DAEMON_KEYS)
        if not isinstance(self.policy, Policy):
            raise ConfigurationError(f"policy={self.policy!r}: give a tidegate.Policy")
        if not self.endpoints:
            raise ConfigurationError("endpoints: give at least one, such as [endpoints.main]")
        for name, endpoint in self.endpoints.items():
            check_name(name)
            if not isinstance(endpoint, EndpointConfig):
                raise ConfigurationError(f"endpoints[{name!r}]: give an EndpointConfig")
        check_reach(self.listen, self.keys)

    @property
    def host(self) -> str:
        """Where it listens: an address without brackets, or a name."""
        return kinds.split_listen(self.listen)[0]

    @property
    def port(self) -> int:
        """Where it listens; 0 for any port that is free."""
        return kinds.split_listen(self.listen)[1]

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return kinds.is_loopback(self.host)

    @property
    def journal_path(self) -> Path | None:
        """The journal's file, from the current folder on; None for no journal."""
        if self.journal == NO_JOURNAL:
            return None
        # A user that does not exist is no error here: there is no such folder either.
        return Path(os.path.expanduser(self.journal))  # noqa: PTH111

    @functools.cached_property
    def made(self) -> Mapping[tuple[str, Wire], Endpoint]:
        """The endpoints of the runtime, by name and wire, with the policy for all under their own.

        Each is made once, for that takes longer than to choose one.
        """
        return {
            (name, wire): each.on_wire(wire, merged(each.policy, self.policy))
            for name, each in self.endpoints.items()
            for wire in each.wires
        }

    @property
    def settings(self) -> Settings:
        """What the runtime is made with.

        The policy is not in it: the endpoints have it, so that a reload changes it.
        """
        named = self.preload
        if named is None:
            wires = (wire for endpoint in self.endpoints.values() for wire in endpoint.wires)
            named = tuple(dict.fromkeys(wires))
        return Settings(workers=self.workers, preload=named)


def merged(policy: Policy, under: Policy) -> Policy:
    """Return ``policy`` with what it leaves out from the one ``under`` it."""
    given = ((name, getattr(policy, name)) for name in policy.__struct_fields__)
    return Policy(**{name: getattr(under, name) if own is None else own for name, own in given})


def check_reach(listen: str, keys: tuple[str, ...]) -> None:
    """Check that nobody else can reach a daemon without a key.

    Raises:
        ConfigurationError: others can.
    """
    if not keys and not kinds.is_loopback(kinds.split_listen(listen)[0]):
        raise ConfigurationError(
            f"listen={listen!r} can be reached from other machines, and keys is empty: give "
            "keys = ['env:TIDEGATE_KEY'], or listen on 127.0.0.1"
        )


def check_name(name: Any) -> None:
    """Check the name of an endpoint.

    Raises:
        ConfigurationError: it could not be shown or said.
    """
    printable = isinstance(name, str) and name.isprintable() and name.strip() == name
    if not printable or not 1 <= len(name) <= NAME_CHARACTERS_MAX:
        raise ConfigurationError(
            f"endpoints: {name!r:.100} cannot be a name: give one of at most "
            f"{NAME_CHARACTERS_MAX} printable characters, without spaces around it"
        )


@functools.cache
def _defaults(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(struct)}


def _read_all(struct: EndpointConfig | DaemonConfig, keys: Mapping[str, Key]) -> None:
    """Read every value that was given; None stays where it is the default."""
    defaults = _defaults(type(struct))
    for name, key in keys.items():
        value = getattr(struct, name)
        if value is not None or defaults[name] is not None:
            msgspec.structs.force_setattr(struct, name, read(name, key, value))
