"""The least there can be: aiohttp, and the first event's text out of its JSON."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import msgspec

from benchmarks.sides import serve


class _Delta(msgspec.Struct):
    content: str = ""


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice]


_decoder = msgspec.json.Decoder(_Chunk)
_PAYLOAD = {"model": "lab", "messages": [{"role": "user", "content": "go"}], "stream": True}


class BareSide:
    """What it can be asked for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._session: aiohttp.ClientSession | None = None

    def first(self, url: str, times: int) -> list[float]:
        """Return the times to first delta of so many requests."""
        return self._loop.run_until_complete(self._first(url, times))

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._loop.run_until_complete(self._session.close())

    async def _first(self, url: str, times: int) -> list[float]:
        self._session = session = self._session or aiohttp.ClientSession()
        took_s = []
        for _ in range(times):
            began_s = time.perf_counter()
            async with session.post(f"{url}/chat/completions", json=_PAYLOAD) as response:
                async for line in response.content:
                    if line.startswith(b"data: {") and _text_of(line):
                        took_s.append(time.perf_counter() - began_s)
                        break
                await response.read()
        return took_s


def _text_of(line: bytes) -> str:
    return _decoder.decode(line.removeprefix(b"data: ")).choices[0].delta.content


def main() -> None:
    """Serve."""
    side = BareSide()
    serve(side)
    side.close()


if __name__ == "__main__":
    main()
