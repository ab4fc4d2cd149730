"""Scripts written as JSON, so that a provider's behaviour can be kept in a file.

A script is a list of answers. Each has ``status``, ``headers`` and ``steps``, and may have
``delay_ms``, ``headers_with_first_frame``, ``keepalive_close_after_ms`` and ``repeat``. A header's
value is text or ``{"http_date_in_ms": n}``. A step is one of these objects, with no other field:

======================================  =====================================================
``send``                                write this text
``b64``                                 write these bytes
``fill``                                write ``before``, ``unit`` ``times`` times, ``after``
``gzip_flush``                          feed this text to the gzip stream, flush it, write
``wait_ms``                             stay silent
``every_ms``, ``send``, ``times``       repeat a write, each after this much silence
``end``                                 eof, cut, reset, hold or keepalive
======================================  =====================================================

Path: a file's text -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.lab.script import Answer, End, HeaderValue, HttpDate, Pace, Send, Step, Wait, Zip


_STEPS = (
    {"send"},
    {"b64"},
    {"fill"},
    {"gzip_flush"},
    {"wait_ms"},
    {"end"},
    {"every_ms", "send", "times"},
)
_STEP = "give one of send, b64, fill, gzip_flush, wait_ms, end, or every_ms with send and times"


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    """What a person writes: a misspelt field is an error."""


class FillForm(_Form):
    """Text made of a repeated unit."""

    unit: str
    times: int
    before: str = ""
    after: str = ""


class StepForm(_Form, omit_defaults=True):
    """One step; its fields say which, and there are no others beside those of its kind."""

    send: str | None = None
    b64: bytes | None = None
    fill: FillForm | None = None
    gzip_flush: str | None = None
    wait_ms: float | None = None
    every_ms: float | None = None
    times: int | None = None
    end: End | None = None

    def __post_init__(self) -> None:
        given = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        if set(given) not in _STEPS:
            raise ValueError(f"a step with {' and '.join(given) or 'nothing'}: {_STEP}")


class DateForm(_Form):
    """A header's value that depends on the clock."""

    http_date_in_ms: float


class AnswerForm(_Form):
    """One answer."""

    status: int = 200
    headers: dict[str, str | DateForm] = {}
    steps: list[StepForm] = []
    delay_ms: float = 0
    headers_with_first_frame: bool = False
    keepalive_close_after_ms: float | None = None
    repeat: bool = False


class _Input(msgspec.Struct):
    script: list[AnswerForm] | None = None
    upstream: list[AnswerForm] | None = None


class _Record(msgspec.Struct):
    id: str = ""
    script: list[AnswerForm] | None = None
    input: _Input | None = None


def answers_from(script: Iterable[object]) -> list[Answer]:
    """Make answers of a script's decoded JSON.

    Raises:
        ValueError: a field that is not known, or a value that does not fit.
    """
    try:
        forms = msgspec.convert(list(script), list[AnswerForm])
    except msgspec.ValidationError as error:
        raise ValueError(f"not a script: {error}") from error
    return [_answer_from(form) for form in forms]


def scripts_from(text: bytes) -> dict[str, list[Answer]]:
    """Read a file: one object with ``script``, or a line for each case with ``input.script``.

    Returns:
        Answers by the case's id, which is empty where there is none. Cases without a script
        are left out.

    Raises:
        ValueError: not JSON, not of this form, no script at all, or an id twice.
    """
    try:
        records = _records(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a script: {error}") from error
    scripts: dict[str, list[Answer]] = {}
    for record in records:
        if record.id in scripts:
            raise ValueError(f"case {record.id!r} is there twice")
        forms = record.script or (record.input and (record.input.script or record.input.upstream))
        if forms:
            scripts[record.id] = [_answer_from(form) for form in forms]
    if not scripts:
        raise ValueError("no script in it")
    return scripts


def _records(text: bytes) -> list[_Record]:
    try:
        return [msgspec.json.decode(text, type=_Record)]
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # More than one value: a line each. What is wrong with a single one is said here too.
        return msgspec.json.Decoder(_Record).decode_lines(text)


def _answer_from(form: AnswerForm) -> Answer:
    close_after_ms = form.keepalive_close_after_ms
    return Answer(
        tuple(map(_step_from, form.steps)),
        status=form.status,
        headers={name: _header_from(value) for name, value in form.headers.items()},
        delay_s=form.delay_ms / 1000,
        headers_with_first_frame=form.headers_with_first_frame,
        keepalive_close_after_s=None if close_after_ms is None else close_after_ms / 1000,
        repeat=form.repeat,
    )


def _header_from(value: str | DateForm) -> HeaderValue:
    return HttpDate(value.http_date_in_ms / 1000) if isinstance(value, DateForm) else value


def _step_from(form: StepForm) -> Step:
    match form:
        case StepForm(every_ms=float(every_ms), send=str(text), times=int(times)):
            return Pace((text.encode(),), every_ms / 1000, times)
        case StepForm(send=str(text)):
            return Send(text.encode())
        case StepForm(b64=bytes(data)):
            return Send(data)
        case StepForm(fill=FillForm(unit, times, before, after)):
            return Send((before + unit * times + after).encode())
        case StepForm(gzip_flush=str(text)):
            return Zip(text.encode())
        case StepForm(wait_ms=float(wait_ms)):
            return Wait(wait_ms / 1000)
        case _:
            assert form.end is not None, "a form has the fields of one step"
            return form.end
