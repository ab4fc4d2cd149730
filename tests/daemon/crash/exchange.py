"""One request and its answer on a socket of its own, which may break at any byte."""

import asyncio
import json


class Broken(Exception):
    """The other side has gone before its answer was whole."""


class Exchange:
    """An answer as it comes; ``open`` makes it, ``async with`` ends it.

    Attributes:
        status: of the answer.
        headers: likewise, their names in small letters.
    """

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers = {}

    @classmethod
    async def open(cls, port, method, path, body=None, headers=()):
        """Send a request, and read the head of its answer."""
        try:
            exchange = cls(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as error:
            raise Broken(str(error)) from error
        try:
            await exchange._ask(method, path, body, dict(headers))
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        self.close()

    def close(self):
        """Leave, whatever is still to come."""
        self._writer.transport.abort()

    async def json(self):
        """Read a body whose length was said."""
        return json.loads(await self._exactly(int(self.headers["content-length"])))

    async def frames(self):
        """Yield each whole frame of a stream; one that is cut was never there."""
        rest = b""
        while size := int(await self._line(), 16):
            rest += (await self._exactly(size + 2))[:-2]
            *whole, rest = rest.split(b"\n\n")
            for frame in whole:
                yield frame
        assert not rest, f"a stream ended in the midst of a frame: {rest}"

    async def _ask(self, method, path, body, headers):
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join((*lines, "", "")).encode() + data)
        self.status = int((await self._line()).split()[1])
        while line := await self._line():
            name, _, value = line.partition(b":")
            self.headers[name.decode().lower()] = value.strip().decode()

    async def _line(self):
        return (await self._read(self._reader.readuntil(b"\r\n")))[:-2]

    async def _exactly(self, size):
        return await self._read(self._reader.readexactly(size))

    async def _read(self, reading):
        try:
            return await reading
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Broken(str(error)) from error
