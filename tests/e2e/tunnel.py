"""A small HTTP proxy on loopback: it asks for a password, and leads every tunnel to one port."""

import base64
import select
import socket
import ssl
import threading
from contextlib import suppress


GUARD_S = 30.0


class Tunnel:
    """Serves ``CONNECT``; whatever name is asked for, the tunnel ends at ``port``.

    Args:
        port: where all tunnels end.
        login: ``user:password`` that it wants, empty for none.
        refusal: the status line with which it refuses all tunnels, empty for none.
        tls: a server's context, for a proxy that is itself reached by TLS.

    Attributes:
        targets: what was asked for, in order.
        open_count: the tunnels that are open.
    """

    def __init__(self, port, *, login="", refusal="", tls=None):
        self.targets = []
        self.open_count = 0
        self._port = port
        self._wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self._refusal = refusal
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changing = threading.Lock()
        self._threads = []
        self._clients = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self):
        self._spawn(self._accept)
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._clients:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for each in self._threads:
            each.join(GUARD_S)
            assert not each.is_alive()

    def _spawn(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.settimeout(GUARD_S)
            self._clients.append(client)
            self._spawn(self._serve, client)

    def _serve(self, client):
        with suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
                self._clients.append(client)
            with client:
                self._answer(client)

    def _answer(self, client):
        lines = self._head_of(client).split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        method, target, _ = lines[0].split(" ")
        assert method == "CONNECT", lines[0]
        self.targets.append(target)
        if self._wanted and headers.get("proxy-authorization") != self._wanted:
            client.sendall(_refusing("407 Proxy Authentication Required"))
        elif self._refusal:
            client.sendall(_refusing(self._refusal))
        else:
            with socket.create_connection(("127.0.0.1", self._port), GUARD_S) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._count(1)
                _relay(client, server)
                self._count(-1)

    def _count(self, change):
        with self._changing:
            self.open_count += change

    @staticmethod
    def _head_of(client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = client.recv(1)
            if not byte:
                raise ConnectionError("no request")
            head += byte
        return head.decode()


def _refusing(status):
    return f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


def _relay(client, server):
    """Carry bytes both ways until one side has had enough, and tell the other.

    In one thread: of two that use a TLS socket at once, one may be told of an end that is none.
    """
    sinks = {client: server, server: client}
    with suppress(OSError):
        while sources := _readable(client, server):
            for each in sources:
                data = _read(each)
                if data == b"":
                    raise ConnectionError("one side has had enough")
                sinks[each].sendall(data or b"")
    for each in sinks:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _readable(*socks):
    # What TLS has deciphered already does not show at the socket.
    pending = [each for each in socks if isinstance(each, ssl.SSLSocket) and each.pending()]
    return pending or select.select(socks, [], [], GUARD_S)[0]


def _read(sock):
    """Return what there is: nothing yet is None, for a record may come in parts."""
    sock.settimeout(0)
    try:
        return sock.recv(1 << 16)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    finally:
        sock.settimeout(GUARD_S)
