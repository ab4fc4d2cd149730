"""Who may ask for what, and how much: the door of the daemon.

``rules.py`` decides, ``middleware.py`` is where it is asked, ``body.py`` reads what comes behind
the headers. All but the last two are pure.
"""

from __future__ import annotations

from tidegate.daemon.access.body import BodyRefused, ClientGone, object_from, read_body
from tidegate.daemon.access.keys import Keys, owner_of
from tidegate.daemon.access.middleware import Access, OwnReply, Reply, own_refusal, send_reply
from tidegate.daemon.access.rate import RateLimit
from tidegate.daemon.access.rules import NOBODY, Rules


__all__ = [
    "NOBODY",
    "Access",
    "BodyRefused",
    "ClientGone",
    "Keys",
    "OwnReply",
    "RateLimit",
    "Reply",
    "Rules",
    "object_from",
    "own_refusal",
    "owner_of",
    "read_body",
    "send_reply",
]
