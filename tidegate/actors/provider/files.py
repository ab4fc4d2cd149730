"""The files that a client is made of besides its target, and what shows that one has changed.

Keys and certificates are replaced while a daemon runs, and hold from the next request on.

Path: ``provider/network.py`` and ``provider/transport.py`` -> this
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from tidegate.protocol.attempts import Target


Stamps: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""Of each file its time, its number and its size; None for one that is not there."""

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_OF_AWS = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_CA_BUNDLE": "",
}
"""Variables of AWS that name a file, and which it is without them."""


def files_of(target: Target, authorities: Sequence[str]) -> Sequence[str]:
    """Return the files that a target's client is made of; most have none.

    Args:
        target: whose client it is.
        authorities: what the environment names, see ``authorities_of_environment``.
    """
    if target.wire == "converse":
        return (*certificates_of(target.verify, authorities), *_files_of_aws(target.options))
    if target.base_url.startswith("http:"):
        return ()
    return certificates_of(target.verify, authorities)


def certificates_of(verify: bool | str, authorities: Sequence[str]) -> Sequence[str]:
    """Return the files and folders of certificates that somebody has named."""
    if isinstance(verify, str):
        return (verify,)
    return authorities if verify else ()


def authorities_of_environment() -> tuple[str, ...]:
    """Return the files and folders that the environment has for the system's authorities."""
    return tuple(path for name in _AUTHORITIES if (path := os.environ.get(name)))


def stamps_of(paths: Sequence[str]) -> Stamps:
    """Return how files look at this moment."""
    return tuple(map(_stamp_of, paths)) if paths else ()


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - with each request, and a Path takes longer than it
    except OSError:
        return None  # whoever reads it says why
    return found.st_mtime_ns, found.st_ino, found.st_size


@lru_cache(maxsize=64)
def _files_of_aws(options: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    given = dict(options)
    named = [given.get(variable) or usual for variable, usual in _OF_AWS.items()]
    # As botocore reads them; a Path would refuse where nobody is at home.
    return tuple(os.path.expanduser(os.path.expandvars(path)) for path in named if path)  # noqa: PTH111
