"""Workers as processes: what the host and the zygote say of them, and how a loss is told."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.protocol.base import Generation, Message


PROVIDERS = "tidegate.actors.provider.actor:Providers"
"""What a worker runs, unless a start names something else."""

CUSTOM_PROVIDERS = "tidegate.actors.provider.custom_worker:CustomStreams"
"""What a worker for custom streams runs."""

CONTROL_BYTES_MAX = 1 << 16
"""The longest packet between host and zygote."""


class WorkerLost(Message, frozen=True, array_like=True):
    """Nothing more will come from this worker; said once, behind its last frame.

    Attributes:
        detail: what is known of the cause, in words.
        exitcode: as ``multiprocessing`` counts it, negative for a signal; None while unknown.
    """

    generation: Generation
    detail: str
    exitcode: int | None = None


class Fork(Message, frozen=True, array_like=True, tag=1):
    """Start a worker; its socket and the pipe for its last words come along.

    Attributes:
        providers: ``package.module:factory`` of what takes the worker's messages.
    """

    generation: Generation
    providers: str


class ZygoteReady(Message, frozen=True, array_like=True, tag=1):
    """The zygote has imported what it was told to.

    Attributes:
        threads: how many it has; it forks only with one.
        complaints: what went wrong on the way, in words, such as a module that is missing.
    """

    pid: int
    threads: int
    complaints: tuple[str, ...] = ()


class Forked(Message, frozen=True, array_like=True, tag=2):
    """The worker's process exists; its pidfd comes along."""

    generation: Generation
    pid: int


class Exited(Message, frozen=True, array_like=True, tag=3):
    """The worker's process is reaped, or could not be made.

    Attributes:
        exitcode: None if there never was a process; ``detail`` then says why.
    """

    generation: Generation
    exitcode: int | None
    detail: str = ""


ToZygote: TypeAlias = Fork
FromZygote: TypeAlias = ZygoteReady | Forked | Exited

_encoder = msgspec.msgpack.Encoder()
_to_zygote = msgspec.msgpack.Decoder(ToZygote)
_from_zygote: msgspec.msgpack.Decoder[FromZygote] = msgspec.msgpack.Decoder(FromZygote)


def packet_from(message: ToZygote | FromZygote) -> bytes:
    """Encode ``message`` as one packet between host and zygote."""
    return _encoder.encode(message)


def decode_to_zygote(packet: bytes) -> ToZygote:
    """Decode a packet in the zygote.

    Raises:
        msgspec.DecodeError: it is not a message for a zygote.
    """
    return _to_zygote.decode(packet)


def decode_from_zygote(packet: bytes) -> FromZygote:
    """Decode a packet in the host.

    Raises:
        msgspec.DecodeError: it is not a message from a zygote.
    """
    return _from_zygote.decode(packet)
