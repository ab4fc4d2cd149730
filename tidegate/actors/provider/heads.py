"""The heads of requests: all but the body, in the form that is sent.

Path: ``provider/sdk_sender.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

import httpx2
from multidict import CIMultiDict, CIMultiDictProxy, istr
from yarl import URL


_LENGTH = "content-length"


class Head(NamedTuple):
    """A request without its body.

    Attributes:
        headers: all but the body's length, in the form that aiohttp takes as it is.
    """

    method: str
    url: URL
    headers: CIMultiDictProxy[str]

    @classmethod
    def of(cls, request: httpx2.Request) -> Head:
        """Take the head of a request."""
        # Each response keeps them, and nearly all are the same for every request.
        headers = CIMultiDict(
            (istr(intern(name)), intern(value))
            for name, value in request.headers.multi_items()
            if name != _LENGTH
        )
        url = URL(str(request.url), encoded=True)
        return cls(request.method, url, CIMultiDictProxy(headers))
