"""A daemon that is killed again and again, each time started anew on the same journal."""

import asyncio
from pathlib import Path

from tests.daemon.crash.exchange import Exchange
from tests.daemon.hosting import DaemonProcess
from tidegate.testing.eventually import eventually


CONFIG = """
listen = "127.0.0.1:0"
max_running = {running}
max_queued = {queued}
log_level = "warning"

[endpoints.main]
wire = "chat"
base_url = "{url}"
api_key = "env:TEST_PROVIDER_KEY"

[policy]
retries = 2
backoff_s = [0.01]
"""


class House:
    """Where the daemon lives.

    Args:
        folder: the journal's.
        lab: the provider.
        turns: how many are asked for in each run, beside those that a kill has put off; some of
            them wait.

    Attributes:
        run: the number of the present run of the daemon; what has a number was said by that run.
        serves: whether it serves: set before it may be asked, and unset before it is killed.
        is_last: whether the present run is not killed.
    """

    def __init__(self, folder, lab, turns):
        self._folder = folder
        self._lab = lab
        running, queued = turns * 4 // 5, turns * 100
        self._config = CONFIG.format(running=running, queued=queued, url=lab.url)
        self._daemon = None
        self._changed = asyncio.Condition()
        self._seen = 0
        self._kill_at = 0
        self.is_last = False
        self._due = asyncio.Event()
        self.run = 0
        self.serves = False

    async def start(self):
        """Start a run, and look that the one before it has left no turn open."""
        self._daemon = await asyncio.to_thread(
            DaemonProcess, self._folder, self._config, {"TEST_PROVIDER_KEY": "key"}
        )
        for state in ("queued", "running"):
            assert await self.turns(f"&state={state}") == [], f"{state} after a kill"
        async with self._changed:
            self.run += 1
            self.serves = True
            self._changed.notify_all()

    async def serving(self, after=0):
        """Wait for a run later than ``after``, and return its number."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.serves and self.run > after)
            return self.run

    async def ask(self, *request, **more):
        """Begin an exchange with the present run."""
        return await Exchange.open(self._daemon.port, *request, **more)

    async def get(self, path):
        """Return a document."""
        async with await self.ask("GET", path) as exchange:
            found = await exchange.json()
            assert exchange.status == 200, found
            return found

    async def turns(self, query=""):
        """Return all turns, page by page."""
        found, before = [], ""
        while page := (await self.get(f"/v1/turns?limit=1000{before}{query}"))["turns"]:
            found += page
            before = f"&before={page[-1]['id']}"
        return found

    def kill_at(self, count):
        """Have the next run killed when clients have seen so many things of it; 0 for never."""
        self._seen, self._kill_at, self.is_last = 0, count, not count
        self._due.clear()

    def saw(self):
        """Count something that a client has seen."""
        self._seen += 1
        if self._seen == self._kill_at:
            self.serves = False
            self._due.set()

    async def killed(self):
        """Kill the present run when it is due; nothing of it is left then, here or there."""
        await self._due.wait()
        await asyncio.to_thread(self._kill)
        await asyncio.to_thread(eventually, lambda: not self._lab.open_connections_count)

    def _kill(self):
        daemon = self._daemon
        pids = daemon.pids()
        daemon.process.kill()
        daemon.process.wait()
        daemon.process.stdout.close()
        assert len(pids) > 1, "it had no workers"
        eventually(lambda: not any(map(runs, pids)))

    async def end(self):
        """End the present run in good order."""
        self.serves = False
        assert await asyncio.to_thread(self._daemon.end) == 0, self._daemon.log.read_text()

    def clear(self):
        """End whatever a failed test has left."""
        if self._daemon is not None and self._daemon.process.poll() is None:
            self._kill()

    def check_cut(self, run):
        """Look that whoever was cut off by a run was cut off by its end."""
        assert not (self.serves and self.run == run), "cut off by a daemon that lives"


def runs(pid):
    """Say whether a process is there and has not ended: whoever adopted it may not have looked."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
