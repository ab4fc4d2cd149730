"""The lab as a process of its own, for people and for benchmarks.

Path: a script in a file -> this -> ``tidegate.lab.server``
"""

from __future__ import annotations

import signal
from collections import deque
from pathlib import Path
from threading import Event
from types import FrameType
from urllib.parse import quote, unquote

from tidegate.lab import chat
from tidegate.lab.capture import answers_from_capture
from tidegate.lab.form import scripts_from
from tidegate.lab.record import Request
from tidegate.lab.script import Answer, End
from tidegate.lab.server import Lab
from tidegate.lab.steps import pace
from tidegate.protocol.captures import is_capture


DEMO_WORDS = ("The ", "tide ", "turns, ", "the ", "gate ", "shuts, ", "and ", "nothing ", "late.")
DEMO_EVERY_S = 0.08


def serve(path: str | Path | None = None, port: int = 0, speed: float | None = None) -> None:
    """Play a file until SIGINT or SIGTERM; print each script's base URL first, one a line.

    Must be called in the main thread. A file of several cases serves each below its own id.

    Args:
        path: a capture, one JSON object with ``script``, or a line for each case with
            ``input.script``; None answers every chat request with a few paced words.
        port: 0 takes a free one.
        speed: of a capture: how many times faster than it was.

    Raises:
        OSError: the file cannot be read, or the port is taken.
        ValueError: the file is not of this form.
    """
    text = Path(path).read_bytes() if path is not None else b""
    if is_capture(text):
        _serve(Lab(answers_from_capture(text, 1.0 if speed is None else speed), port=port), [""])
        return
    if speed is not None:
        raise ValueError("only a capture has a speed; a script says its own")
    if path is None:
        _serve(Lab(route=demo_answer, port=port), [""])
        return
    scripts = scripts_from(text)
    if len(scripts) == 1:
        (answers,) = scripts.values()
        _serve(Lab(answers, port=port), [""])
    else:
        _serve(Lab(route=_Shelf(scripts), port=port), list(scripts))


def demo_answer(request: Request) -> Answer | None:
    """Answer any chat request with the same few words, streamed if that is asked for."""
    if request.path.endswith("/models"):
        return Answer.json({"object": "list", "data": [{"id": "lab", "object": "model"}]})
    if not request.path.endswith("/chat/completions"):
        return None
    tokens = (1, len(DEMO_WORDS))
    try:
        asked = request.json()
    except ValueError as error:
        return chat.error_answer(400, str(error))
    if not asked.get("stream"):
        return Answer.json(chat.completion("".join(DEMO_WORDS), tokens=tokens))
    words = pace([chat.text(word) for word in DEMO_WORDS], DEMO_EVERY_S)
    wants_usage = (asked.get("stream_options") or {}).get("include_usage")
    usage = (chat.usage(*tokens),) if wants_usage else ()
    return Answer((chat.role(), words, chat.finish(), *usage, chat.done(), End.KEEPALIVE))


class _Shelf:
    """Routes by the first part of the path, which names the case."""

    def __init__(self, scripts: dict[str, list[Answer]]) -> None:
        self._scripts = {name: deque(answers) for name, answers in scripts.items()}

    def __call__(self, request: Request) -> Answer | None:
        answers = self._scripts.get(unquote(request.path.split("/")[1]))
        if not answers:
            return None
        return answers[0] if answers[0].repeat else answers.popleft()


def _serve(lab: Lab, names: list[str]) -> None:
    ended = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with lab:
            for name in names:
                prefix = f"/{quote(name, safe='')}" if name else ""
                label = f"{name} " if name else ""
                print(f"{label}{lab.base}{prefix}/v1", flush=True)  # noqa: T201  this is its output
            ended.wait()
    finally:
        for number, old in before.items():
            signal.signal(number, old)
