"""What the kernel still has to send, which a reset would throw away.

Path: ``tidegate.lab.connection`` -> this -> the client's socket
"""

from __future__ import annotations

import struct
import sys


SIOCOUTQNSD = 0x894B  # linux/sockios.h: bytes not sent yet, the unacknowledged ones not counted


if sys.platform == "linux":
    from fcntl import ioctl

    def unsent_bytes(descriptor: int) -> int:
        """Return how much of a TCP socket's output waits for room at the receiver."""
        (count,) = struct.unpack("i", ioctl(descriptor, SIOCOUTQNSD, bytes(4)))
        return int(count)

else:

    def unsent_bytes(descriptor: int) -> int:
        """Return 0: elsewhere a reset may overtake what a slow reader has not taken."""
        del descriptor
        return 0
