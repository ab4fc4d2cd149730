"""The log: which words are written, one line about each request, and one about each turn."""

from __future__ import annotations

from tidegate.daemon.logs.lines import about, configure
from tidegate.daemon.logs.requests import AccessLog
from tidegate.daemon.logs.turns import TurnLog


__all__ = ["AccessLog", "TurnLog", "about", "configure"]
