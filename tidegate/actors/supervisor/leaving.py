"""Processes of workers that were given up, until they are reaped: nobody waits for them."""

from __future__ import annotations

from tidegate.actors.supervisor.process import ForkedWorker, WorkerProcess, end_all
from tidegate.protocol.base import Generation


class Leaving:
    """Who still has to end."""

    def __init__(self) -> None:
        self._processes: dict[Generation, WorkerProcess] = {}
        self._unborn: set[Generation] = set()  # given up before their process was known

    def add(self, generation: Generation, process: WorkerProcess | None) -> None:
        """Keep the process, or the place of one that is being made, until it has ended."""
        if process is None:
            self._unborn.add(generation)
        else:
            self._processes[generation] = process

    def started(self, generation: Generation, process: WorkerProcess) -> None:
        """Kill a process that came after its worker was given up."""
        self._unborn.discard(generation)
        process.kill()
        self.add(generation, process)

    def exited(self, generation: Generation) -> None:
        """Forget a process that is reaped, or was never made."""
        self._unborn.discard(generation)
        process = self._processes.pop(generation, None)
        if process is not None:
            process.close()

    def orphaned(self) -> None:
        """Forget the zygote's children: it is gone, and they with it."""
        self._unborn.clear()
        for generation, process in list(self._processes.items()):
            if isinstance(process, ForkedWorker):
                process.kill()
                self.exited(generation)

    def kill(self) -> None:
        """Send SIGKILL to all."""
        for process in self._processes.values():
            process.kill()

    def close(self) -> None:
        """Kill all, wait until they have ended, and let go of them."""
        end_all(self._processes.values())
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        self._unborn.clear()

    def after_fork_in_child(self) -> None:
        """Close the copies."""
        for process in self._processes.values():
            process.after_fork_in_child()

    def __bool__(self) -> bool:
        return bool(self._processes or self._unborn)
