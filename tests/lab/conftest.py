"""A client that shows what a server's socket really does."""

import socket

import pytest

from tidegate.lab import Lab


GUARD_S = 10.0


class RawClient:
    """One TCP connection, without an HTTP library's opinions."""

    def __init__(self, lab):
        self.socket = socket.create_connection(("127.0.0.1", lab.port), timeout=GUARD_S)

    def ask(self, target="/v1/chat/completions", body=b"{}", *, method="POST", headers=""):
        head = f"{method} {target} HTTP/1.1\r\nhost: lab\r\n{headers}"
        self.socket.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)

    def read_until(self, mark):
        """Return everything up to and including ``mark``, and whatever came with it."""
        data = b""
        while mark not in data:
            piece = self.socket.recv(1 << 16)
            assert piece, f"closed after {data!r}"
            data += piece
        return data

    def read_to_end(self):
        """Return everything and how it ended: ``eof`` or ``reset``."""
        data = b""
        try:
            while piece := self.socket.recv(1 << 20):
                data += piece
        except ConnectionResetError:
            return data, "reset"
        return data, "eof"

    def leave(self):
        self.socket.close()

    def leave_with_reset(self):
        on_for_0_s = b"\x01\0\0\0\0\0\0\0"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, on_for_0_s)
        self.socket.close()


@pytest.fixture
def connect():
    """Connect to a lab as often as wanted; everything is closed behind the test."""
    clients = []

    def connect_to(lab):
        clients.append(RawClient(lab))
        return clients[-1]

    yield connect_to
    for client in clients:
        client.leave()


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab
