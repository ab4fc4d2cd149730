"""Numbers for things, so that a state of the world is a tuple of small numbers.

A *part* of the model does what a machine decides on a copy, and remembers it: the same message in
the same state is decided once, however many worlds it happens in.
"""

from __future__ import annotations

import msgspec


encode = msgspec.msgpack.Encoder(enc_hook=repr).encode


class Table:
    """Things by number; equal keys have one number."""

    def __init__(self):
        self.things = []
        self._numbers = {}

    def number(self, thing, key=None):
        """Return the number of ``thing``, whose key is itself unless there is another."""
        key = thing if key is None else key
        number = self._numbers.setdefault(key, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number

    def __len__(self):
        return len(self.things)


def copied(value):
    """Return a container of one's own; what is in it never changes."""
    if isinstance(value, dict):
        return type(value)({key: copied(each) for key, each in value.items()})
    return value.copy() if isinstance(value, list | set) else value
