"""``tidegate run``: one turn, streamed to the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tidegate.cli.capturing import captured_in
from tidegate.cli.ctrl_c import KILLED, ctrl_c
from tidegate.cli.screen import Screen, print_json
from tidegate.cli.usage import UsageError
from tidegate.errors import ConfigurationError
from tidegate.protocol.addresses import check_base_of, check_base_url
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.events import AnyEvent, TurnCompleted, TurnFailed, TurnInterrupted
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.requests import Request
from tidegate.runtime import Runtime
from tidegate.turn import Turn


LOCAL = "local"
OPTION = "--endpoint"
REFERENCE = "env:"
NO_MODEL = "no --model was given and none was sent, but most servers want one"


def run(  # noqa: PLR0913 - each is an option of the command
    prompt: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    endpoint: str = LOCAL,
    model: str | None = None,
    api_key: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    capture: Path | None = None,
) -> int:
    """Ask a model and stream its answer to the terminal.

    The answer goes to standard output, everything else to standard error. The first Ctrl-C
    interrupts the turn and keeps what has come, the second ends at once. Exit codes: 0 the answer
    is complete, 1 it is not, 2 wrong use, 130 interrupted.

    Args:
        prompt: What to ask; - reads it from standard input.
        endpoint: Either local, or the base URL of a server that speaks OpenAI's chat completions.
        model: The model's name, which most servers want; for local the path of a .gguf file.
        api_key: Where the key is, as env:NAME. By default env:OPENAI_API_KEY, if it is set.
        json: Print the events instead, one a line.
        capture: Note in this file, which must be new or empty, what goes over the wire, without
            keys. It has the prompt and the answer; tidegate lab plays it.
    """
    try:
        request = _request_from(_text_from(prompt), endpoint, model, api_key)
        with (
            captured_in(capture) as folder,
            ctrl_c() as presses,
            Runtime(workers=1, capture=folder) as runtime,
            runtime.start(request) as turn,
            presses.interrupts(turn),
        ):
            last = _show_as_json(turn) if json else _show(turn)
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    if model is None and endpoint != LOCAL and _is_refused(last):
        print(NO_MODEL, file=sys.stderr)
    return _status_from(last)


def _text_from(prompt: str) -> str:
    text = sys.stdin.read().strip() if prompt == "-" else prompt
    if not text:
        raise UsageError("the prompt is empty: say what to ask")
    return text


def _request_from(text: str, endpoint: str, model: str | None, api_key: str | None) -> Request:
    payload: dict[str, object] = {"messages": [{"role": "user", "content": text}]}
    if endpoint == LOCAL:
        if api_key is not None:
            raise UsageError("the local model takes no --api-key: give --endpoint as well")
        return Request(Endpoint.local(model) if model else Endpoint.local(), payload)
    if api_key is not None and not api_key.startswith(REFERENCE):
        # Every user of a machine sees the commands that run on it.
        raise UsageError("a key must not stand in a command: give --api-key env:NAME")
    check_base_url(OPTION, endpoint)
    check_base_of(OPTION, endpoint, "chat")
    if model is not None:
        payload["model"] = model
    return Request(Endpoint.chat(endpoint, api_key), payload)


def _show(turn: Turn) -> AnyEvent | None:
    screen = Screen()
    last = None
    for event in turn:
        screen.show(event)
        last = event
    screen.close()
    return last


def _show_as_json(turn: Turn) -> AnyEvent | None:
    last = None
    for event in turn:
        print_json(event)
        last = event
    return last


def _is_refused(last: AnyEvent | None) -> bool:
    return isinstance(last, TurnFailed) and last.error.kind is FailureKind.BAD_REQUEST


def _status_from(last: AnyEvent | None) -> int:
    if isinstance(last, TurnCompleted):
        return 0
    return KILLED if isinstance(last, TurnInterrupted) else 1
