"""For tests of programs that use tidegate, and for its own: a provider that plays scripts."""

from __future__ import annotations

from tidegate.lab import (
    Answer,
    Closed,
    End,
    HttpDate,
    Lab,
    Request,
    blast,
    chat,
    converse,
    frame,
    gate,
    keepalive,
    messages,
    pace,
    raw,
    responses,
    send,
    wait,
    zipped,
)


__all__ = [
    "Answer",
    "Closed",
    "End",
    "HttpDate",
    "Lab",
    "Request",
    "blast",
    "chat",
    "converse",
    "frame",
    "gate",
    "keepalive",
    "messages",
    "pace",
    "raw",
    "responses",
    "send",
    "wait",
    "zipped",
]
