"""The daemon's own refusals, in the words of the API that was asked."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.daemon.access.middleware import Reply, own_refusal
from tidegate.daemon.access.routes import Api
from tidegate.daemon.fronts import refusal_of


def refused(api: Api, status: int, kind: str, message: str, headers: Mapping[str, str]) -> Reply:
    """Return a refusal.

    Args:
        api: what was asked.
        status: of HTTP.
        kind: one word for programs.
        message: for people.
        headers: of the reply.
    """
    if api == "turns":
        return own_refusal(api, status, kind, message, headers)
    return refusal_of(api, status, kind, message, headers)
