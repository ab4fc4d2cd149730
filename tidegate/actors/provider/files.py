"""The files that a client is made of besides its target, and what shows that one has changed.

Keys and certificates are replaced while a daemon runs, and hold from the next request on.

Path: ``provider/network.py`` and ``provider/transport.py`` -> this
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
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


def stamps_for(target: Target) -> Stamps:
    """Return how the files of a target's client look; most have none."""
    paths: list[str] = []
    if not target.base_url.startswith("http:"):
        paths += certificates_of(target.verify)
    if target.wire == "converse":
        paths += _files_of_aws(dict(target.options))
    return stamps_of(paths)


def certificates_of(verify: bool | str) -> list[str]:
    """Return the files and folders of authorities that somebody has named."""
    if isinstance(verify, str):
        return [verify]
    return [path for name in _AUTHORITIES if verify and (path := os.environ.get(name))]


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Return how files look at this moment."""
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - with each request, and a Path takes longer than it
    except OSError:
        return None  # whoever reads it says why
    return found.st_mtime_ns, found.st_ino, found.st_size


def _files_of_aws(options: dict[str, str]) -> Iterator[str]:
    for variable, usual in _OF_AWS.items():
        if path := options.get(variable) or usual:
            # As botocore reads them; a Path would refuse where nobody is at home.
            yield os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111
