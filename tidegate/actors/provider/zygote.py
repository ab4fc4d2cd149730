"""The zygote: a process with one thread that has the SDKs imported and forks workers.

It is the workers' parent: it reaps them, and takes them along when it ends, which it does when
the host closes the control socket or is gone. Nothing here blocks but the wait for the host.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple, NoReturn

from tidegate.actors.provider.process import settle
from tidegate.actors.provider.worker import worker_main
from tidegate.protocol.base import Generation
from tidegate.protocol.workers import (
    CONTROL_BYTES_MAX,
    Exited,
    Fork,
    Forked,
    FromZygote,
    ZygoteReady,
    decode_to_zygote,
    packet_from,
)


PARENT_CHECK_S = 5.0
REAP_S = 1.0


class Child(NamedTuple):
    """One worker, seen by its parent."""

    generation: Generation
    process: ForkProcess
    pid: int
    pidfd: int


class Zygote:
    """Forks workers, reports their ends, and ends them.

    Args:
        control: the packet socket to the host.
        host_pid: the parent; when it is another, the host is gone.
    """

    def __init__(self, control: socket.socket, host_pid: int) -> None:
        # What imported modules hold open is theirs; all later descriptors are the zygote's own.
        self._foreign = {*open_descriptors()} - {control.fileno()}
        self._control = control
        self._host_pid = host_pid
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._children: set[Child] = set()
        self._context = multiprocessing.get_context("fork")

    def serve(self) -> None:
        """Do what the host says until it is gone."""
        while os.getppid() == self._host_pid:
            # The timeout is for a host that died while another process holds copies of its
            # sockets, on a system without a parent-death signal.
            for key, _ in self._selector.select(PARENT_CHECK_S):
                if isinstance(key.data, Child):
                    self._bury(key.data)
                elif not self._take_order():
                    return

    def end(self) -> None:
        """Kill the workers and reap them, for a second at most."""
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
        deadline_s = time.monotonic() + REAP_S
        while self._children and time.monotonic() < deadline_s:
            for key, _ in self._selector.select(REAP_S):
                if isinstance(key.data, Child):
                    self._bury(key.data)
                else:
                    self._selector.unregister(self._control)  # its end is always readable

    def tell(self, message: FromZygote, descriptors: tuple[int, ...] = ()) -> None:
        """Send a packet; a host that is gone shows at the next look at the socket."""
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [packet_from(message)], descriptors)

    def _take_order(self) -> bool:
        try:
            packet, descriptors, _, _ = socket.recv_fds(
                self._control, CONTROL_BYTES_MAX, 2, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            return False  # a reset is an end as well
        if not packet:
            return False
        order = decode_to_zygote(packet)
        if len(descriptors) == 2:
            self._fork(order, *descriptors)
        else:
            self.tell(Exited(order.generation, None, "the zygote is out of descriptors"))
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _fork(self, order: Fork, sock_fd: int, words_fd: int) -> None:
        process = self._context.Process(
            target=self._become_worker, args=(order, sock_fd, words_fd, os.getpid())
        )
        try:
            process.start()
            pid = process.pid
            assert pid is not None
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            self.tell(Exited(order.generation, None, f"fork failed: {error}"))
            return
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # both sides do it: whoever comes first, it holds from here on
        child = Child(order.generation, process, pid, pidfd)
        self._children.add(child)
        self._selector.register(pidfd, selectors.EVENT_READ, child)
        self.tell(Forked(order.generation, pid), (pidfd,))

    def _become_worker(self, order: Fork, sock_fd: int, words_fd: int, zygote_pid: int) -> None:
        os.setpgid(0, 0)
        settle(f"tidegate-w{order.generation}", zygote_pid)
        self._selector.close()
        self._control.close()
        parent = multiprocessing.parent_process()
        assert parent is not None
        kept = self._foreign | {sock_fd, words_fd, sys.stdin.fileno(), parent.sentinel}
        for descriptor in open_descriptors():
            if descriptor not in kept:
                # The sweep itself had one open, which is gone.
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        worker_main(socket.socket(fileno=sock_fd), order.generation, words_fd, order.providers)

    def _bury(self, child: Child) -> None:
        # While the dead leader is not reaped, its group's number cannot be anyone else's.
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if os.waitid(os.P_PIDFD, child.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                os.killpg(child.pid, signal.SIGKILL)
        exitcode = child.process.exitcode
        self._selector.unregister(child.pidfd)
        self._children.discard(child)
        child.process.close()
        os.close(child.pidfd)
        self.tell(Exited(child.generation, exitcode))


def open_descriptors() -> list[int]:
    """Return the open descriptors; the one that looks is among them, and closed."""
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


def preload(names: tuple[str, ...]) -> list[str]:
    """Import modules, and call what ``package.module:function`` names.

    Returns:
        What failed, in words: a worker then imports it by itself, or fails by it.
    """
    complaints = []
    for name in names:
        module, _, function = name.partition(":")
        try:
            imported = importlib.import_module(module)
            if function:
                getattr(imported, function)()
        except Exception as error:  # noqa: BLE001 - reported to the host
            complaints.append(f"preload of {name}: {type(error).__name__}: {error}")
    return complaints


def threads_count() -> int:
    """Return the number of this process's threads, those of libraries included."""
    return max(len([*Path("/proc/self/task").iterdir()]), threading.active_count())


def main(control_fd: int, host_pid: int, names: tuple[str, ...]) -> NoReturn:
    """Run the zygote; never returns.

    Args:
        control_fd: the packet socket to the host.
        host_pid: the process to end with.
        names: what to import; see ``preload``.
    """
    complaint = settle("tidegate-zygote", host_pid)
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    complaints = preload(names)
    if complaint:
        complaints.append(complaint)
    gc.collect()
    gc.freeze()  # no collection in a worker writes to the pages that it shares
    zygote = Zygote(control, host_pid)
    threads = threads_count()
    zygote.tell(ZygoteReady(os.getpid(), threads, tuple(complaints)))
    code = 0
    try:
        if threads == 1:  # a fork copies locks that other threads hold, but not the threads
            zygote.serve()
        zygote.end()
    except BaseException:  # noqa: BLE001 - the rim: the workers die with this process
        code = 1
        traceback.print_exc()
    # Not by the interpreter's own end: multiprocessing would wait for the workers there.
    os._exit(code)
