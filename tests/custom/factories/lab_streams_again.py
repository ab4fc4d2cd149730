"""The same streams by another name."""

from lab_streams import Streams


__all__ = ["Streams"]
