"""What keeps a daemon from starting though its configuration is sound: one verdict for all who ask.

What may pass by itself is none of it: an address that another process has, a journal that another
daemon writes, name servers that do not answer.

Path: ``tidegate serve``, ``tidegate config check`` -> this; ``daemon/serve.py`` -> this
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

from tidegate.daemon.config.load import InvalidConfig, Loaded
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.config.references import resolve_keys
from tidegate.daemon.config.schema import BUILT_IN
from tidegate.daemon.journal.schema import check_place
from tidegate.errors import ConfigurationError
from tidegate.settings import environment


def check_start(loaded: Loaded, environ: Mapping[str, str] | None = None) -> None:
    """Check that a daemon with this configuration can start here.

    Args:
        loaded: the configuration.
        environ: the environment, by default the one of the process.

    Raises:
        InvalidConfig: it cannot, and will not unless somebody changes something.
    """
    environ = environment() if environ is None else environ
    if problems := tuple(_problems(loaded, environ)):
        raise InvalidConfig(problems)


def family_of(config: DaemonConfig) -> socket.AddressFamily:
    """Return the family of the addresses on which the daemon listens."""
    return socket.AF_INET6 if ":" in config.host else socket.AF_INET


def _problems(loaded: Loaded, environ: Mapping[str, str]) -> Iterator[str]:
    config = loaded.config
    for key, trouble in (
        ("listen", _listen_trouble(config)),
        ("keys", _keys_trouble(config, environ)),
        ("journal", _journal_trouble(config)),
    ):
        if trouble is not None:
            origin = loaded.origins.get(key, BUILT_IN)
            yield trouble if origin == BUILT_IN else f"{origin}: {trouble}"


def _listen_trouble(config: DaemonConfig) -> str | None:
    try:
        socket.getaddrinfo(config.host, config.port, family_of(config), socket.SOCK_STREAM)
    except socket.gaierror as error:
        why = None if error.errno == socket.EAI_AGAIN else error.strerror
    except UnicodeError:
        why = "it cannot be a name"
    else:
        return None
    return why and f"listen={config.listen!r}: {why}: give an address of this machine"


def _keys_trouble(config: DaemonConfig, environ: Mapping[str, str]) -> str | None:
    try:
        resolve_keys(config.keys, environ)
    except ConfigurationError as error:
        return str(error)
    return None


def _journal_trouble(config: DaemonConfig) -> str | None:
    if (path := config.journal_path) is None:
        return None
    try:
        check_place(path)
    except OSError as error:
        return f"journal {path}: {error.strerror}: give another file"
    except ConfigurationError as error:
        return str(error)
    return None
