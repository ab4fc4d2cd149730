"""Every key of the file, in the order in which they are shown: its kind, and what it means."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidegate.daemon.config import kinds
from tidegate.daemon.config.kinds import Kind
from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs
from tidegate.protocol.wires import Wire


LOCAL_WIRES: tuple[Wire, ...] = ("chat", "responses", "messages")
"""What the server of a local model speaks."""

WIRE_NAMES = (*LOCAL_WIRES, "converse", "local")
"""A stream of one's own is no wire here: it runs in a program of one's own."""

MIB = 1 << 20


class Key(NamedTuple):
    """One key.

    Attributes:
        kind: what its value must look like.
        meaning: in few words.
        live: whether a reload applies it; what is not live needs a restart.
        hidden: whether its value may be a secret, so that it is never shown.
    """

    kind: Kind
    meaning: str
    live: bool = True
    hidden: bool = False


def read(name: str, key: Key, value: Any) -> Any:
    """Return what is kept of ``value``.

    Args:
        name: of the key, or of the variable or option that gave the value.
        key: what it must look like.
        value: as a file, a program or a parsed variable has it.

    Raises:
        ConfigurationError: it is of another kind; the text names it and says what to give.
    """
    try:
        return key.kind.read(name, value)
    except ConfigurationError:
        raise
    except ValueError:
        raise refusal(name, key, value) from None


def refusal(name: str, key: Key, value: Any) -> ConfigurationError:
    """Return the error about a value that is of another kind."""
    shown = "" if key.hidden else f"={_short(value)}"
    return ConfigurationError(f"{name}{shown}: give {key.kind.wanted}")


def _short(value: Any) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


DAEMON_KEYS: dict[str, Key] = {
    "listen": Key(kinds.LISTEN, "where clients connect", live=False),
    "keys": Key(kinds.REFERENCES, "who may call; needed unless listen is on loopback", hidden=True),
    "hosts": Key(kinds.HOSTS, "further names in Host that are accepted on loopback"),
    "cors_origins": Key(kinds.ORIGINS, "pages in browsers that may call"),
    "journal": Key(kinds.JOURNAL, "where turns are kept", live=False),
    "journal_sync": Key(
        kinds.choice("normal", "full"),
        "what a commit survives: normal a crash of the daemon, full one of the machine",
        live=False,
    ),
    "journal_keep_s": Key(
        kinds.seconds(), "how long the events of an ended turn are kept", live=False
    ),
    "journal_bytes_max": Key(
        kinds.whole(MIB, unit="bytes"),
        "size beyond which the oldest ended turns lose their events",
        live=False,
    ),
    "idempotency_keep_s": Key(
        kinds.seconds(), "how long an Idempotency-Key is remembered", live=False
    ),
    "on_disconnect": Key(kinds.ON_DISCONNECT, "what becomes of a turn whose client has left"),
    "heartbeat_s": Key(kinds.seconds(), "silence on a stream after which a comment is sent"),
    "commit_after_s": Key(
        kinds.seconds(from_zero=True), "how long the status line waits for the first outcome"
    ),
    "client_queue_bytes": Key(
        kinds.whole(1, unit="bytes"), "how far one client may lag before it is cut off"
    ),
    "slow_client_timeout_s": Key(
        kinds.seconds(), "how long one write to a client may take before it is cut off"
    ),
    "body_bytes_max": Key(kinds.whole(1, unit="bytes"), "the largest body of a request"),
    "max_running": Key(kinds.whole(1), "turns that run at the same time"),
    "max_queued": Key(kinds.whole(0), "turns that may wait for one of those to end"),
    "rate_per_minute": Key(kinds.whole(0), "requests a minute for each key; 0 for no limit"),
    "notices": Key(
        kinds.FLAG, "whether clients that see only text are told of what went wrong in words"
    ),
    "drain_s": Key(kinds.seconds(from_zero=True), "how long running turns may go on after SIGTERM"),
    "workers": Key(
        kinds.whole(1),
        "worker processes for the providers' streams; by default one per core",
        live=False,
    ),
    "preload": Key(
        kinds.many(kinds.choice("chat", "responses", "messages", "converse"), "a list of wires"),
        "wires that workers have from the start; by default those of the endpoints",
        live=False,
    ),
    "log_format": Key(kinds.choice("text", "json"), "how lines of the log look", live=False),
    "log_level": Key(
        kinds.choice("debug", "info", "warning", "error"), "the least grave line that is logged"
    ),
}
"""Those at the top of the file."""

ENDPOINT_KEYS: dict[str, Key] = {
    "wire": Key(kinds.choice(*WIRE_NAMES), "the provider's protocol; local for a model here"),
    "models": Key(kinds.PATTERNS, "names of models that choose this endpoint"),
    "base_url": Key(kinds.BASE_URL, "the provider's address; by default that of its SDK"),
    "api_key": Key(
        kinds.REFERENCE, "the provider's key; by default the variable of its SDK", hidden=True
    ),
    "headers": Key(
        kinds.PAIRS,
        "sent with every request; 'env:NAME' or 'file:PATH' stands for what is there",
        hidden=True,
    ),
    "query": Key(kinds.PAIRS, "added to the address of every request", hidden=True),
    "organization": Key(kinds.TEXT, "of OpenAI; by default OPENAI_ORG_ID"),
    "project": Key(kinds.TEXT, "of OpenAI, or of Vertex AI on the wire messages"),
    "api_version": Key(kinds.TEXT, "makes it Azure"),
    "proxy": Key(kinds.PROXY, "an HTTP proxy; by default that of the environment", hidden=True),
    "verify": Key(kinds.VERIFY, "whether certificates are checked, or against which CA"),
    "region": Key(kinds.TEXT, "of a cloud: AWS, or Vertex AI on the wire messages"),
    "profile": Key(kinds.TEXT, "of the AWS configuration files"),
    "role_arn": Key(kinds.TEXT, "an AWS role to assume"),
    "local_model": Key(
        kinds.MODEL, "the model on this machine; by default smollm2 on the wire local"
    ),
    "on_disconnect": Key(kinds.ON_DISCONNECT, "in place of the daemon's own"),
}
"""Those of a table ``[endpoints.NAME]``."""

_POLICY_MEANINGS = {
    "retries": "further attempts after a failed one",
    "backoff_s": "seconds before the first retry, the second and so on",
    "backoff_jitter": "the part of it that chance may add",
    "retry_after_cap_s": "the longest wait a provider may ask for",
    "connect_timeout_s": "for name look-up, connect and TLS together",
    "first_event_timeout_s": "from the request to the first event",
    "stale_after_s": "without progress",
    "alive_timeout_s": "without a single byte",
    "deadline_s": "for the whole turn",
    "finish_grace_s": "from the evidence to the end of the body",
    "kill_grace_s": "for a worker to acknowledge a cancel",
    "stale_giveup": "stale kills in a row that open the breaker; 0 for never",
    "giveup_cooldown_s": "until the open breaker lets one turn through",
    "after_visible_text": "what a failure does after visible text was taken",
    "window_bytes": "bytes of events that may wait for a reader",
    "event_bytes_max": "the largest event or JSON body that is taken",
}

POLICY_KEYS: dict[str, Key] = {
    name: Key(kinds.from_form(form), _POLICY_MEANINGS[name]) for name, form in knobs.FORMS.items()
}
"""Those of a table ``[policy]`` or ``[endpoints.NAME.policy]``."""
