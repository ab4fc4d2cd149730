"""The heads of requests: all but the body, in the form that is sent.

Path: ``provider/sdk_sender.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

import httpx2
from yarl import URL


_LENGTH = "content-length"


class Head(NamedTuple):
    """A request without its body.

    Attributes:
        headers: all but the body's length.
    """

    method: str
    url: URL
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, request: httpx2.Request) -> Head:
        """Take the head of a request."""
        # Each response keeps them, and nearly all are the same for every request.
        headers = [(intern(name), intern(value)) for name, value in request.headers.multi_items()]
        url = URL(str(request.url), encoded=True)
        return cls(request.method, url, tuple(each for each in headers if each[0] != _LENGTH))
