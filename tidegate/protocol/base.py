"""What every message has in common."""

from __future__ import annotations

from typing import NewType

import msgspec


TurnNumber = NewType("TurnNumber", int)
"""A turn within its runtime, counted from 1 in the order of the starts."""

Token = NewType("Token", int)
"""The fencing token of an attempt; only grows, over all turns of a runtime."""

Seq = NewType("Seq", int)
"""The place of a delta within its attempt, from 0, without gaps."""

Generation = NewType("Generation", int)
"""One life of one worker process; never used again.

An attempt that is read in its caller's thread has no worker: its generation is minus its token.
"""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of what crosses a pipe or a mailbox: an array, for it is read by the same version."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is stored or served: a map, for it is read by others and later."""
