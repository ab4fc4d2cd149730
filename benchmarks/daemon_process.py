"""The daemon in a process of its own, and a client that costs next to nothing."""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self


CONFIG = """
listen = "127.0.0.1:0"
journal = "{journal}"
log_level = "warning"
max_running = 2000

[endpoints.main]
wire = "chat"
base_url = "{url}"
api_key = "env:BENCHMARK_KEY"

[policy]
retries = 0
"""


class Daemon:
    """The handle on that process; ``with`` starts and ends it.

    Args:
        url: of the provider.
        journal: the journal's file name, or ``none``.
    """

    def __init__(self, url: str, journal: str = "tidegate.db") -> None:
        self._url = url
        self._journal = journal
        self._process: subprocess.Popen[str]
        self._folder: tempfile.TemporaryDirectory[str]
        self.port = 0

    @property
    def pid(self) -> int:
        """Of the daemon, without its workers."""
        return self._process.pid

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-bench-")
        folder = Path(self._folder.name)
        (folder / "tidegate.toml").write_text(CONFIG.format(url=self._url, journal=self._journal))
        self._process = subprocess.Popen(
            [str(Path(sys.executable).with_name("tidegate")), "serve"],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env={"BENCHMARK_KEY": "key", "PATH": ""},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the daemon did not start")
        self.port = int(line.rpartition(":")[2])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(40)
        self._folder.cleanup()


class Connection:
    """A kept connection to a server of chat completions.

    Args:
        port: on loopback.
        path: of the route.
        headers: more lines of a request's head.
    """

    def __init__(self, port: int, path: str, headers: str = "") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"{path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}"

    def ask(self, user: str = "", **more: object) -> None:
        """Ask for a stream."""
        body = {
            "model": "bench",
            "stream": True,
            "messages": [{"role": "user", "content": "Hello"}],
            **({"user": user} if user else {}),
            **more,
        }
        self.post(body)

    def post(self, body: Mapping[str, object]) -> None:
        """Send a document."""
        data = json.dumps(body).encode()
        head = f"POST {self._head}content-type: application/json\r\ncontent-length: {len(data)}"
        self._socket.sendall(f"{head}\r\n\r\n".encode() + data)

    def get(self) -> None:
        """Ask for a resource."""
        self._socket.sendall(f"GET {self._head}\r\n".encode())

    def until(self, mark: bytes) -> bytes:
        """Read until these bytes have come, and return all."""
        got = b""
        while mark not in got[-70_000:]:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError(
                    f"the server ended its answer before {mark!r}: {got[-300:]!r}"
                )
            got += data
        return got

    def whole(self) -> bytes:
        """Return a chunked body, read to its end."""
        got = self.until(b"0\r\n\r\n").partition(b"\r\n\r\n")[2]
        pieces: list[bytes] = []
        at = 0
        while True:
            begin = got.index(b"\r\n", at) + 2
            size = int(got[at:begin], 16)
            if not size:
                return b"".join(pieces)
            pieces.append(got[begin : begin + size])
            at = begin + size + 2

    def fileno(self) -> int:
        """Return its descriptor, for a selector."""
        return self._socket.fileno()

    def take(self) -> bytes:
        """Return what has come."""
        return self._socket.recv(262_144)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def count_all(connections: Sequence[Connection], mark: bytes) -> list[int]:
    """Read all to the ends of their chunked bodies, and return how often ``mark`` was in each."""
    found = dict.fromkeys(connections, 0)
    rests = dict.fromkeys(connections, b"")
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.data
                taken = connection.take()
                data = rests[connection] + taken
                if not taken:
                    raise ConnectionError(f"the server ended its answer too early: {data!r:.300}")
                found[connection] += data.count(mark)
                # So short that no whole mark is in it, and long enough for the end of the body.
                rests[connection] = data[-min(len(mark) - 1, len(data)) :]
                if data.endswith(b"0\r\n\r\n"):
                    selector.unregister(connection)
    return list(found.values())
