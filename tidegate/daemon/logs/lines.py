"""Lines of the log, with what each is about as fields.

At any level but ``debug`` nothing is written that could be out of a request or an answer: what
other packages say is cut to their own words, and an exception to its class and its frames. Keys
are taken out at every level.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Literal, TextIO, TypeAlias

import msgspec


Format: TypeAlias = Literal["text", "json"]

_OURS = "tidegate"
_HIDDEN = "..."
_KEY_CHARS_MIN = 4
_CAUSES_MAX = 8
_FRAMES_MAX = 16
_CONTROLS = dict.fromkeys((*range(32), 127, 0x85, 0x2028, 0x2029), " ")


def about(
    *,
    turn: str | None = None,
    attempt: int | None = None,
    token: int | None = None,
    endpoint: str | None = None,
    owner: str | None = None,
    **more: str | float | None,
) -> dict[str, Any]:
    """Return the ``extra`` for a call of ``logging``: what the line is about.

    Args:
        turn: its id.
        attempt: its number.
        token: its fencing token.
        endpoint: its name in the configuration.
        owner: digest of the key.
        more: further facts; never any text of a request or an answer.
    """
    given = {"turn": turn, "attempt": attempt, "token": token, "endpoint": endpoint, "owner": owner}
    return {"about": {key: value for key, value in {**given, **more}.items() if value is not None}}


def configure(
    level: str,
    log_format: Format = "text",
    *,
    keys: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Write the logs of the whole process, from here on; it may be called again.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``; other packages say warnings at least.
        log_format: how lines look.
        keys: texts that are taken out of every line.
        stream: where to; standard error by default.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(stream or sys.stderr)
    made = JsonLines if log_format == "json" else TextLines
    handler.setFormatter(made(keys, is_open=number <= logging.DEBUG))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(number, logging.WARNING))
    # A record that cannot be written would be, with its arguments, on standard error.
    logging.raiseExceptions = number <= logging.DEBUG
    logging.getLogger(_OURS).setLevel(number)


class Lines(logging.Formatter):
    """What both formats have in common: which words of a record are written.

    Args:
        keys: texts that are taken out.
        is_open: whether everything else is written, as for ``debug``.
    """

    def __init__(self, keys: Iterable[str] = (), *, is_open: bool = False) -> None:
        super().__init__()
        # The longest first, for one may be the beginning of another.
        long_enough = (key for key in keys if len(key) >= _KEY_CHARS_MIN)
        self._keys = sorted(long_enough, key=len, reverse=True)
        self._is_open = is_open

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, or several if everything is written."""
        message = self._clean(self._message(record))
        error = self._clean(self._error(record))
        fields = {
            name: self._clean(value) if isinstance(value, str) else value
            for name, value in getattr(record, "about", {}).items()
        }
        return self.line(record, message, {**fields, **({"error": error} if error else {})})

    def line(self, record: logging.LogRecord, message: str, fields: Mapping[str, Any]) -> str:
        """Return the line, of words that may be written."""
        raise NotImplementedError

    def _clean(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, "***")
        return text.encode("utf-8", "replace").decode()

    def _message(self, record: logging.LogRecord) -> str:
        template, args = str(record.msg), record.args
        if not self._is_open and record.name.partition(".")[0] != _OURS:
            # Strangers put into their words whatever they have; numbers say nothing.
            template, args = template.partition("\n")[0], _harmless(args)
        try:
            return str(template % args) if args else template
        except (TypeError, ValueError, KeyError):
            return template

    def _error(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return ""
        if self._is_open:
            return "".join(traceback.format_exception(error)).strip()
        return " <- ".join(_outline(each) for each in _causes(error))


class JsonLines(Lines):
    """Each record as one JSON object."""

    def line(self, record: logging.LogRecord, message: str, fields: Mapping[str, Any]) -> str:
        """Return the line, of words that may be written."""
        written = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        # What is common to all lines stands first, and is never replaced.
        written = {**written, **fields, **written}
        return msgspec.json.encode(written, enc_hook=str).decode("utf-8", "replace")


class TextLines(Lines):
    """Each record as a line for people, with its fields behind the words."""

    def line(self, record: logging.LogRecord, message: str, fields: Mapping[str, Any]) -> str:
        """Return the line, of words that may be written."""
        shown = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
        words = f"{record.name}: {message}{shown}"
        if not self._is_open:
            words = words.translate(_CONTROLS)
        return f"{_time(record.created)} {record.levelname:<7} {words}"


def _time(created_s: float) -> str:
    moment = datetime.fromtimestamp(created_s, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return msgspec.json.encode(text).decode() if " " in text or '"' in text or not text else text


def _harmless(args: Any) -> Any:
    if not args:
        return args
    if isinstance(args, Mapping):
        return {key: _harmless_one(value) for key, value in args.items()}
    return tuple(_harmless_one(value) for value in args)


def _harmless_one(value: Any) -> Any:
    return value if isinstance(value, int | float) else _HIDDEN


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what is behind it, the nearest first."""
    found: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and behind not in found and len(found) < _CAUSES_MAX:
        found.append(behind)
        hidden = None if behind.__suppress_context__ else behind.__context__
        behind = behind.__cause__ or hidden
    return found


def _outline(error: BaseException) -> str:
    """Return the class of an error and where it came from, without its words."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    places = [f"{_file(frame.filename)}:{frame.lineno}" for frame in reversed(frames)]
    name = type(error).__qualname__
    return f"{name} at {', '.join(places)}" if places else name


def _file(name: str) -> str:
    return "/".join(PurePath(name).parts[-3:])
