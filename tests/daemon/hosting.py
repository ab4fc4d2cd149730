"""A real daemon in a process of its own, for tests."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from tidegate.testing.eventually import eventually


READY_S = 30
END_S = 30
PROMPT = {"model": "test-model", "messages": [{"role": "user", "content": "Hello"}]}


class DaemonProcess:
    """One run of ``tidegate serve``.

    Args:
        folder: where its files are.
        config: its configuration, as TOML.
        environ: variables beside those of this process.
    """

    def __init__(self, folder, config, environ=()):
        self.folder = folder
        (folder / "tidegate.toml").write_text(config)
        self.log = folder / "daemon.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(Path(sys.executable).with_name("tidegate")), "serve"],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **dict(environ)},
            )
        # A line is all that it ever prints, or none if it fails.
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(END_S)
            self.process.stdout.close()
            raise AssertionError(f"the daemon did not start:\n{self.log.read_text()}")
        self.url = line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def client(self, **options):
        """Return a client of it, to be closed by the caller."""
        return httpx.Client(base_url=self.url, timeout=30, **options)

    def pids(self):
        """Return the processes that it has brought about, itself included."""
        found, due = [], [self.process.pid]
        while due:
            pid = due.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    due += [int(child) for child in task.read_text().split()]
        return found

    def end(self, *, number=signal.SIGTERM):
        """End it, and return its exit code once nothing of it is left."""
        pids = self.pids()
        self.process.send_signal(number)
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            raise AssertionError(f"the daemon did not end:\n{self.log.read_text()}") from None
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids[1:]))
        self.process.stdout.close()
        return code

    def end_now(self):
        """End it with all that it runs, and return its exit code."""
        self.process.terminate()
        # Two signals at once are one, so the second waits until the first was taken.
        eventually(lambda: self.process.poll() is not None or self._is_draining())
        return self.end()

    def _is_draining(self):
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 503
        except httpx.HTTPError:
            return True  # it listens no more

    def ended(self):
        """Wait for its end, which was brought about already, and return its exit code."""
        code = self.process.wait(END_S)
        self.process.stdout.close()
        return code

    def kill(self):
        """End it without a word, and wait until nothing of it is left."""
        assert self.end(number=signal.SIGKILL) == -signal.SIGKILL


class Frames:
    """The frames of a response as they come, in a thread of their own."""

    def __init__(self, response):
        self.response = response
        self.got = []
        self._more = threading.Condition()
        self.over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        rest = b""
        with contextlib.suppress(httpx.HTTPError):
            for data in self.response.iter_raw():
                rest += data
                *whole, rest = rest.split(b"\n\n")
                with self._more:
                    self.got += whole
                    self._more.notify_all()
        with self._more:
            self.over = True
            self._more.notify_all()

    def until(self, wanted, within_s=30):
        """Wait for a frame with these bytes, and return all up to there."""
        with self._more:
            found = self._more.wait_for(
                lambda: any(wanted in frame for frame in self.got) or self.over, within_s
            )
            assert found, f"{wanted} did not come, but {self.got}"
            assert any(wanted in frame for frame in self.got), f"{wanted} is not in {self.got}"
            return list(self.got)

    def to_end(self, within_s=30):
        """Wait for the end, and return all frames."""
        with self._more:
            assert self._more.wait_for(lambda: self.over, within_s), f"no end, but {self.got}"
            return list(self.got)
