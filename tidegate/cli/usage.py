"""The error of a command that was given something it cannot use."""

from __future__ import annotations


class UsageError(Exception):
    """A word on the command line makes no sense; the text names it and the way out."""
