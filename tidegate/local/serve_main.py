"""What runs in the model server's own process, from its first line to its end.

The process must not outlive its owner, however that one dies. Three watches share this, because
each has a hole: the parent-death signal exists on Linux alone; the end of the lifeline (standard
input) is not seen while a child that the owner forked holds a copy; asking for the parent works
always, but needs a thread that runs, and loading a model keeps the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

import msgspec


PARENT_POLL_S = 0.5
PR_SET_PDEATHSIG = 1


class ServeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner asks of the process.

    Attributes:
        model_path: a GGUF file.
        alias: the model's name in the server's answers.
        owner_pid: the process whose end is the end of this one.
        mark: opens the line that reports the address; no other line begins with it.
        threads_count: threads that compute.
        slots_count: answers at the same time.
        context_tokens: room for prompts and answers, of all slots together.
    """

    model_path: str
    alias: str
    owner_pid: int
    mark: str
    threads_count: int
    slots_count: int
    context_tokens: int


def main(order_json: str) -> None:
    """Serve until the owner ends; a server that cannot start ends with its reason on stderr."""
    order = msgspec.json.decode(order_json, type=ServeOrder)
    _die_with(order.owner_pid)
    _watch_lifeline()
    server = _start_server(order)  # it would end if the object were dropped
    # The break in front: the server's own chatter may have left a line open.
    os.write(1, f"\n{order.mark}{server.listening_address}\n".encode())
    while os.name == "nt" or os.getppid() == order.owner_pid:
        time.sleep(PARENT_POLL_S)
    os._exit(0)


def _die_with(owner_pid: int) -> None:
    if sys.platform == "linux":
        # It goes off when the *thread* that started this process ends; that is the keeper thread
        # of ``server.py``, which stays as long as this process does.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.name != "nt" and os.getppid() != owner_pid:
        os._exit(0)  # the owner died before the signal was set


def _watch_lifeline() -> None:
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait_for_the_end() -> None:
        while os.read(lifeline, 1):
            continue
        os._exit(0)

    threading.Thread(target=wait_for_the_end, name="lifeline", daemon=True).start()


def _start_server(order: ServeOrder) -> Any:
    import xllamacpp  # noqa: PLC0415 - an extra, and only this process wants it

    params = xllamacpp.CommonParams()
    params.model.path = order.model_path
    params.model_alias = {order.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # A page in the user's browser has no business here.
    params.cors_origins = "http://127.0.0.1"
    params.ui = False
    params.offline = True
    params.n_ctx = order.context_tokens
    params.n_parallel = order.slots_count
    params.cpuparams.n_threads = order.threads_count
    params.cpuparams_batch.n_threads = order.threads_count
    params.use_jinja = True
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.verbosity = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(str(error))
