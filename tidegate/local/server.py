"""Starts a model server in a process of its own, shares it between turns and ends it."""

from __future__ import annotations

import importlib.util
import logging
import os
import secrets
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import Future
from pathlib import Path

import msgspec

from tidegate.errors import ConfigurationError, ForkedRuntime, RuntimeStopped, TidegateError
from tidegate.local.serve_main import ServeOrder
from tidegate.local.weights import SMOLLM2, locate


logger = logging.getLogger("tidegate.local")

READY_TIMEOUT_S = 60.0
SLOTS_COUNT = 4
CONTEXT_TOKENS = 8192
LINE_BYTES_MAX = 4096
LINE_CHARACTERS_SHOWN = 300
LINES_KEPT = 12
KEEPER_JOIN_S = 1.0

# The child gets the owner's import path and not the owner's main module: what is importable here
# is importable there, and a script without a guard is not run again.
BOOTSTRAP = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from tidegate.local.serve_main import main; main(sys.argv[1])"
)


class LocalServers:
    """The model servers of one runtime: one process for each model, however many turns ask.

    Usable from any thread. A server that died is started again when it is next asked for. All of
    them end with ``close()`` or with this process, however it dies.
    """

    def __init__(self, *, ready_timeout_s: float = READY_TIMEOUT_S) -> None:
        self._ready_timeout_s = ready_timeout_s
        self._lock = threading.Lock()
        self._servers: dict[Path, _ModelServer] = {}
        self._closed = False
        self._owner_pid = os.getpid()

    def base_url(self, model: str) -> str:
        """Wait until the server is ready; about 1.5 s the first time, nothing from then on.

        Args:
            model: ``"smollm2"``, or the path of a ``.gguf`` file.

        Returns:
            What a client of the chat wire takes as its base URL, ``/v1`` included.

        Raises:
            ConfigurationError: the extra, the weights or the file is missing, or the server
                cannot run it; the text says what to do, or the server's last lines.
            RuntimeStopped: ``close()`` was called before or meanwhile.
            ForkedRuntime: this is a process forked from the one that owns the servers.
        """
        return self.address(model).result()

    def address(self, model: str) -> Future[str]:
        """Begin what ``base_url`` waits for, and return without waiting.

        Returns:
            A future of the base URL, or of one of the errors of ``base_url``. Callers share it,
            so it cannot be cancelled; its callbacks run in a thread of the server and must not
            block.
        """
        if os.getpid() != self._owner_pid:
            return _failed(ForkedRuntime("the local model servers belong to the parent process"))
        try:
            _require_extra()
            model_path = locate(model)
        except ConfigurationError as error:
            return _failed(error)
        with self._lock:
            if self._closed:
                return _failed(RuntimeStopped("the local model servers were stopped"))
            server = self._servers.get(model_path)
            if server is None or server.ended:
                alias = SMOLLM2.name if model == SMOLLM2.name else model_path.stem
                server = _ModelServer(model_path, alias, self._ready_timeout_s)
                try:
                    server.start()
                except RuntimeError as error:  # no thread is to be had
                    return _failed(_cannot_start(alias, error))
                self._servers[model_path] = server
            return server.address

    def pids(self) -> tuple[int, ...]:
        """Process ids of the servers that run, for diagnosis."""
        with self._lock:
            servers = list(self._servers.values())
        return tuple(pid for server in servers if (pid := server.pid) is not None)

    def close(self) -> None:
        """Kill the servers and reap them; whoever waits for one gets ``RuntimeStopped``.

        Idempotent, from any thread. In a forked child it does nothing: the servers are not its.
        """
        if os.getpid() != self._owner_pid:
            return
        with self._lock:
            self._closed = True
            servers = list(self._servers.values())
            self._servers.clear()
        for server in servers:
            server.kill()
        for server in servers:
            server.wait()


class _ModelServer:
    """One server process and the thread that keeps it.

    The thread starts the process, reads all that it says and reaps it. It lives exactly as long as
    the process, because on Linux the end of the thread would be the end of the process.
    """

    def __init__(self, model_path: Path, alias: str, ready_timeout_s: float) -> None:
        self.address: Future[str] = Future()
        self.address.set_running_or_notify_cancel()
        self._model_path = model_path
        self._alias = alias
        self._ready_timeout_s = ready_timeout_s
        self._mark = f"{secrets.token_hex(16)} "
        self._last_lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._late = False
        self._keeper = threading.Thread(
            target=self._keep, name=f"local-server-{alias}", daemon=True
        )

    def start(self) -> None:
        self._keeper.start()

    @property
    def ended(self) -> bool:
        process = self._process
        return self.address.done() if process is None else process.poll() is not None

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def kill(self) -> None:
        """End the process at once, even one that is not started yet: it holds nothing to save."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def wait(self) -> None:
        """Wait until the process is reaped, after ``kill()``."""
        if self._process is not None:
            self._process.wait()
        # The user's program may have forked while the pipe was made, and its child then holds the
        # pipe open that the keeper reads: it is not worth waiting for.
        self._keeper.join(KEEPER_JOIN_S)

    def _keep(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the rim of a thread; nobody may wait for ever
            self._fail(error)

    def _run(self) -> None:
        process = self._spawn()
        alarm = threading.Timer(self._ready_timeout_s, self._give_up)
        alarm.daemon = True
        self.address.add_done_callback(lambda _: alarm.cancel())
        with process:
            try:
                alarm.start()
                self._read(process)
            finally:
                process.kill()  # it is gone already, unless the reading failed
        self._report_end(process.returncode)

    def _spawn(self) -> subprocess.Popen[bytes]:
        order = ServeOrder(
            model_path=str(self._model_path),
            alias=self._alias,
            owner_pid=os.getpid(),
            mark=self._mark,
            # They wait for each other in a busy loop, so that one without a core holds up all of
            # them: the core that the runtime itself needs is not to be taken.
            threads_count=max(1, (os.cpu_count() or 1) - 1),
            slots_count=SLOTS_COUNT,
            context_tokens=CONTEXT_TOKENS,
        )
        order_json = msgspec.json.encode(order).decode()
        # -P: modules of the current folder are found where the owner finds them, and not first.
        command = [sys.executable, "-P", "-c", BOOTSTRAP, order_json, *sys.path]
        with self._lock:
            if self._killed:
                raise RuntimeStopped("the local model servers were stopped")
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # The terminal's Ctrl-C is for the owner alone.
                start_new_session=True,
            )
            return self._process

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Take the report and keep the last of the chatter, until the process ends."""
        assert process.stdout is not None
        while line := process.stdout.readline(LINE_BYTES_MAX):
            text = line.decode(errors="replace").strip()
            if text.startswith(self._mark):
                self.address.set_result(f"{text.removeprefix(self._mark)}/v1")
            elif text:
                self._last_lines.append(text[:LINE_CHARACTERS_SHOWN])

    def _give_up(self) -> None:
        """Runs in the alarm's thread."""
        if not self.address.done():
            self._late = True
            self.kill()

    def _report_end(self, status: int) -> None:
        lines = "\n".join(self._last_lines) or "(nothing)"
        if self.address.done():
            if not self._killed:
                logger.warning(
                    "local.server_ended model=%s status=%s last=%s", self._alias, status, lines
                )
        elif self._late:
            self._fail(
                ConfigurationError(
                    f"the server of the local model {self._alias!r} was not ready within "
                    f"{self._ready_timeout_s:g} s; it said:\n{lines}"
                )
            )
        elif self._killed:
            self._fail(RuntimeStopped("the local model servers were stopped"))
        else:
            self._fail(
                ConfigurationError(
                    f"the server of the local model {self._alias!r} ended with status {status} "
                    f"before it was ready; it said:\n{lines}"
                )
            )

    def _fail(self, error: Exception) -> None:
        if self.address.done():
            logger.error("local.keeper_failed model=%s", self._alias, exc_info=error)
            return
        if not isinstance(error, TidegateError):
            error = _cannot_start(self._alias, error)
        self.address.set_exception(error)


def _require_extra() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigurationError(
            "the local model needs xllamacpp, which is not installed: run "
            "`pip install 'tidegate[local]'`, then `tidegate local fetch`"
        )


def _cannot_start(alias: str, error: Exception) -> ConfigurationError:
    text = f"the server of the local model {alias!r} cannot be started: {error!r}"
    failed = ConfigurationError(text)
    failed.__cause__ = error
    return failed


def _failed(error: TidegateError) -> Future[str]:
    future: Future[str] = Future()
    future.set_exception(error)
    return future
