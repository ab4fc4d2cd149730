"""Clients that live through the ends of their daemon, and remember all that they saw."""

import asyncio
import json

from tests.daemon.crash.exchange import Broken


CHAT = "/v1/chat/completions"
ENDS = {"turn.completed", "turn.failed", "turn.interrupted"}


class Reader:
    """Reads the events of one turn to its end, and comes back to its cursor after each break.

    Args:
        house: of the daemon.
        turn_id: the turn's.
        after: the cursor that it begins with.
        rest: after so many events it goes by itself, and comes back; 0 for never.

    Attributes:
        events: type and JSON of all that it saw, in order.
    """

    def __init__(self, house, turn_id, after=-1, rest=0):
        self.house = house
        self.turn_id = turn_id
        self.first = after + 1
        self.rest = rest
        self.events = []
        self.more = asyncio.Event()

    @property
    def ended(self):
        return bool(self.events) and self.events[-1][0] in ENDS

    async def read(self):
        run = 0
        while not self.ended:
            run = await self.house.serving(run)
            try:
                while await self._read_on() and not self.ended:
                    pass
            except Broken:
                self.house.check_cut(run)

    async def _read_on(self):
        """Read until a rest is due, or the stream ends; returns whether it was a rest."""
        cursor = self.first + len(self.events) - 1
        path = f"/v1/turns/{self.turn_id}/events"
        # Both ways to say it, by turns.
        header = {"last-event-id": str(cursor)} if cursor % 2 and cursor >= 0 else {}
        path += "" if header else f"?after={cursor}"
        async with await self.house.ask("GET", path, headers=header) as exchange:
            assert exchange.status == 200, await exchange.json()
            took = 0
            async for frame in exchange.frames():
                took += self._take(frame)
                if took and took == self.rest:
                    return True
        assert self.ended, f"{self.turn_id}: a whole stream without a terminal event"
        return False

    def _take(self, frame):
        lines = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
        if b"id" not in lines:
            return 0  # how soon to come back
        assert not self.ended, "an event behind the terminal one"
        assert int(lines[b"id"]) == self.first + len(self.events), "an offset that was not next"
        self.events.append((lines[b"event"].decode(), lines[b"data"]))
        self.more.set()
        self.house.saw()
        return 1


class Turn:
    """A turn as its client knows it.

    Args:
        house: of the daemon.
        name: which the provider knows, and says in each word.
        dice: for what it does.

    Attributes:
        id: as soon as it was told.
        run: the run of the daemon that has told it first.
        readers: whoever reads its events.
        text: what came through a compatible API.
        whole: whether that came to its normal end.
    """

    def __init__(self, house, name, dice):
        self.house = house
        self.name = name
        self.dice = dice
        self.id = None
        self.run = 0
        self.readers = []
        self.text = ""
        self.whole = False

    def payload(self, **more):
        """Return the body of a request."""
        return {"model": self.name, "messages": [{"role": "user", "content": "Hello"}], **more}

    async def live(self):
        """Do what this client does, until all of its turn was read."""
        await self.dice.choice((self._create, self._create, self._stream, self._ask))()
        if self.id is not None:
            await self._read()

    async def _create(self):
        """Make it as a resource; asked again after a break, it is the same turn."""
        body = {"endpoint": "main", "payload": self.payload()}
        key = {"idempotency-key": self.name}
        run = 0
        while self.id is None:
            run = await self.house.serving(run)
            try:
                async with await self.house.ask("POST", "/v1/turns", body, key) as exchange:
                    found = await exchange.json()
            except Broken:
                self.house.check_cut(run)
                continue
            assert exchange.status == 202, found
            self.id = found["id"]
            is_new = "idempotency-replayed" not in exchange.headers
            self.run = run if is_new else 0
            self.house.saw()
            if is_new and self.house.is_last:
                await self._interrupt()

    async def _interrupt(self):
        """End what nobody kills."""
        path = f"/v1/turns/{self.id}/interrupt"
        async with await self.house.ask("POST", path) as exchange:
            assert exchange.status == 200, await exchange.json()

    async def _stream(self):
        """Stream it through a compatible API, which knows no way to come back."""
        run = await self.house.serving()
        try:
            body = self.payload(stream=True)
            async with await self.house.ask("POST", CHAT, body) as exchange:
                self._told(exchange, run)
                if exchange.status != 200:
                    assert "error" in await exchange.json()
                    return
                async for frame in exchange.frames():
                    self._take(frame)
        except Broken:
            self.house.check_cut(run)

    async def _ask(self):
        """Ask for a whole answer."""
        run = await self.house.serving()
        try:
            async with await self.house.ask("POST", CHAT, self.payload()) as exchange:
                self._told(exchange, run)
                body = await exchange.json()
        except Broken:
            self.house.check_cut(run)
            return
        if exchange.status == 200:
            self.text = body["choices"][0]["message"]["content"]
            self.whole = True

    def _told(self, exchange, run):
        self.id, self.run = exchange.headers["tidegate-turn"], run
        self.house.saw()

    def _take(self, frame):
        kind, _, data = frame.partition(b": ")
        if kind != b"data":
            return
        self.house.saw()
        if data == b"[DONE]":
            self.whole = True
            return
        assert not self.whole, "a frame behind the last one"
        for choice in json.loads(data).get("choices", ()):
            self.text += choice["delta"].get("content") or ""

    async def _read(self):
        first = Reader(self.house, self.id)
        self.readers.append(first)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(first.read())
            if self.dice.random() < 0.3:  # one who comes and goes
                self._add(tasks, Reader(self.house, self.id, rest=self.dice.randint(1, 9)))
            if self.dice.random() < 0.2:  # one who has the beginning from somebody else
                late = self.dice.randint(1, 9)
                while len(first.events) < late and not first.ended:
                    first.more.clear()
                    await first.more.wait()
                if not first.ended:
                    self._add(tasks, Reader(self.house, self.id, len(first.events) - 1))

    def _add(self, tasks, reader):
        self.readers.append(reader)
        tasks.create_task(reader.read())
