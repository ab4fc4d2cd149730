"""Host and worker: what crosses the pipe.

Path: ``provider/actor.py`` -> this -> ``sink/actor.py``, and back by way of ``supervisor/io.py``.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.protocol.answers import Finish, Usage
from tidegate.protocol.base import Generation, Message, Seq, Token, TurnNumber
from tidegate.protocol.deltas import Delta
from tidegate.protocol.failures import Failure


START_ALLOWANCE_S = 60.0
"""What a worker may take to come up, or to import an SDK and make a client, before that counts as
silence."""


class Target(msgspec.Struct, frozen=True, array_like=True):
    """Where a request goes, and as whom; the key is plain text here, for it is on its way.

    Attributes:
        wire: ``chat``, ``responses``, ``messages``, ``converse`` or ``custom``.
        base_url: empty for the SDK's own default.
        api_key: empty to send none.
        verify: ``True``, ``False``, or the path of a CA file.
        options: what one wire alone needs, by name, in a fixed order; values may be secrets.
    """

    wire: str
    base_url: str = ""
    api_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    organization: str = ""
    project: str = ""
    api_version: str = ""
    proxy: str = ""
    verify: bool | str = True
    options: tuple[tuple[str, str], ...] = ()


class Order(msgspec.Struct, frozen=True, array_like=True):
    """All that a provider actor needs to know of its attempt.

    Attributes:
        body: the payload as JSON, an object without ``stream`` and ``stream_options``.
        stream: whether to ask for a stream.
        stream_options: the value for ``stream_options`` as JSON; empty to leave it out.
        choices: how many choices must show evidence.
        connect_timeout_s: for name look-up, connect and TLS together.
        event_bytes_max: the largest event or JSON body that is taken, in bytes.
        life_every_s: the shortest time between two reports of life after the first event.
        buffered_tools: whether to ask for tools' inputs that are checked before they are sent.
        capture: the file that notes what goes over the wire; empty for none.
    """

    target: Target
    body: bytes
    stream: bool = True
    stream_options: bytes = b""
    choices: int = 1
    connect_timeout_s: float = 30.0
    event_bytes_max: int = 8 << 20
    life_every_s: float = 1.0
    buffered_tools: bool = False
    capture: str = ""


class StartAttempt(Message, frozen=True, array_like=True, tag=1):
    """Open the stream, and send until the attempt's deltas reach ``limit_bytes``."""

    turn: TurnNumber
    token: Token
    generation: Generation
    order: Order
    limit_bytes: int


class CancelAttempt(Message, frozen=True, array_like=True, tag=2):
    """End the attempt; answered by its ``Ended``, at once if there is none such."""

    turn: TurnNumber
    token: Token


class Ping(Message, frozen=True, array_like=True, tag=3):
    """Answer with a pong: it shows that the worker's loop turns."""

    number: int


class Credit(Message, frozen=True, array_like=True, tag=4):
    """Send until the attempt's deltas reach ``limit_bytes`` in all; the limit only grows."""

    token: Token
    limit_bytes: int


ToWorker: TypeAlias = StartAttempt | CancelAttempt | Ping | Credit


class WorkerReady(Message, frozen=True, array_like=True, tag=1):
    """The worker's loop runs."""

    generation: Generation
    pid: int


class Opened(Message, frozen=True, array_like=True, tag=2):
    """The response headers of a success have come."""

    turn: TurnNumber
    token: Token
    request_id: str | None = None


class Life(Message, frozen=True, array_like=True, tag=3):
    """Something came that is no progress; sent for the first event, then at most once a second.

    Attributes:
        event: whether it was a decoded event; False for bytes that held none, such as comments.
    """

    turn: TurnNumber
    token: Token
    event: bool = True


class Deltas(Message, frozen=True, array_like=True, tag=4):
    """Deltas ``seq`` and following of one attempt, as they came in one turn of the loop."""

    turn: TurnNumber
    token: Token
    seq: Seq
    deltas: tuple[Delta, ...]


class Described(Message, frozen=True, array_like=True, tag=5):
    """What the provider calls the response, its model and its time; empty means unknown."""

    turn: TurnNumber
    token: Token
    response_id: str = ""
    model: str = ""
    created: int = 0


class UsageSeen(Message, frozen=True, array_like=True, tag=6):
    """The provider counted model tokens; the last figures stand.

    Attributes:
        details: what its wire says with them, a JSON object that is merged into the envelope.
    """

    turn: TurnNumber
    token: Token
    usage: Usage
    details: bytes = b""


class Finished(Message, frozen=True, array_like=True, tag=7):
    """The wire's evidence was decoded; ``seq`` is the number of deltas before it.

    Attributes:
        finishes: the finish of each choice, by its place.
    """

    turn: TurnNumber
    token: Token
    seq: Seq
    finishes: tuple[Finish, ...]


class Ended(Message, frozen=True, array_like=True, tag=8):
    """The attempt is over in the worker, and its socket closed or kept for the next.

    Attributes:
        failure: None after a clean end or a cancel.
        cancelled: whether it ended because it was told to.
        refused: a compatibility retry that would help: ``stream_options`` or ``streaming``.
        learned: what the answer showed about the endpoint: ``streaming_ignored`` or
            ``contentless`` frames only.
    """

    turn: TurnNumber
    token: Token
    failure: Failure | None = None
    cancelled: bool = False
    refused: str = ""
    learned: str = ""


class Pong(Message, frozen=True, array_like=True, tag=9):
    """The answer to a ping."""

    generation: Generation
    number: int


class Waking(Message, frozen=True, array_like=True, tag=10):
    """The worker imports or makes what the attempt needs; its request is sent after that."""

    turn: TurnNumber
    token: Token


class Woken(Message, frozen=True, array_like=True, tag=11):
    """It is there: from here on a silence is the provider's."""

    turn: TurnNumber
    token: Token


FromWorker: TypeAlias = (
    WorkerReady
    | Opened
    | Life
    | Deltas
    | Described
    | UsageSeen
    | Finished
    | Ended
    | Pong
    | Waking
    | Woken
)
