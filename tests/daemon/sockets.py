"""A client down to its socket, which can leave at any byte and in any way."""

import json
import socket
import struct


GUARD_S = 30
RESET = struct.pack("ii", 1, 0)


class Client:
    """One connection to a daemon.

    Args:
        port: where it listens.
        window: bytes of its receive buffer; 0 for the system's own.
    """

    def __init__(self, port, *, window=0):
        self.socket = socket.socket()
        if window:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(GUARD_S)
        self.socket.connect(("127.0.0.1", port))
        self._got = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.socket.close()

    def ask(self, method, path, body=None, headers=(), *, cut=0, version="1.1"):
        """Send a request, the last ``cut`` bytes of its body excepted."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/{version}",
            "Host: localhost",
            f"Content-Length: {len(data)}",
        ]
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        head = "\r\n".join((*lines, "", "")).encode()
        self.socket.sendall(head + data[: len(data) - cut])
        return self

    @property
    def got(self):
        """All that has come."""
        return bytes(self._got)

    def until(self, wanted):
        """Read until ``wanted`` has come, and return all that has."""
        start = 0
        while self._got.find(wanted, start) < 0:
            start = max(0, len(self._got) - len(wanted))
            self.more()
        return self.got

    def more(self):
        """Read once more; something must come."""
        piece = self.socket.recv(65536)
        assert piece, f"the end came behind {self.got}"
        self._got += piece

    def to_end(self):
        """Read until the other side has closed, and return all that has come."""
        while piece := self.socket.recv(65536):
            self._got += piece
        return self.got

    @property
    def turn_id(self):
        """The turn's name, out of the head of the response."""
        head = self.until(b"\r\n\r\n").partition(b"\r\n\r\n")[0].decode()
        lines = [line.partition(": ") for line in head.lower().split("\r\n")]
        return next(value for name, _, value in lines if name == "tidegate-turn")

    def leave(self, how="fin"):
        """Go: ``fin`` ends the own side first, ``close`` closes, ``reset`` resets."""
        if how == "fin":
            self.socket.shutdown(socket.SHUT_WR)
        elif how == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.close()
