"""What is in the log, and above all what is not."""

import io
import json
import logging
from types import SimpleNamespace

import pytest

from tests.daemon.ops.serving import Client, Server, Steps, answer
from tidegate.daemon.access import Access, Keys, Rules, owner_of
from tidegate.daemon.journal.model import TurnRecord
from tidegate.daemon.logs import AccessLog, TurnLog, about, configure
from tidegate.daemon.protocol import CONNECTION
from tidegate.errors import ConfigurationError
from tidegate.protocol.answers import Answer, AttemptReport
from tidegate.protocol.events import TurnCompleted, TurnFailed, TurnInterrupted
from tidegate.protocol.failures import Failure, FailureKind


KEY = "a-key-of-nobody"
SECRET = "what the user has asked"


@pytest.fixture(autouse=True)
def _as_it_was():
    """Put back what ``configure`` changes for the whole process."""
    root, ours = logging.getLogger(), logging.getLogger("tidegate")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    logging.raiseExceptions = True
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture
def written():
    return io.StringIO()


def lines(written):
    return [json.loads(line) for line in written.getvalue().splitlines()]


def fail(error):
    raise error


def failing(words):
    try:
        fail(ValueError(words))
    except ValueError as error:
        raise RuntimeError(words) from error


# Lines


def test_line_of_json_has_its_fields(written):
    configure("info", "json", stream=written)
    extra = about(turn="turn_1", attempt=2, token=7, endpoint="main", owner="0a1b", state="failed")
    extra["about"]["message"] = "not this one"
    logging.getLogger("tidegate.daemon").warning("turn %s", "ended", extra=extra)

    [line] = lines(written)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "tidegate.daemon",
        "message": "turn ended",
        "turn": "turn_1",
        "attempt": 2,
        "token": 7,
        "endpoint": "main",
        "owner": "0a1b",
        "state": "failed",
    }


def test_line_of_text_has_its_fields_behind_the_words(written):
    configure("info", "text", stream=written)
    extra = about(turn="turn_1", endpoint="my endpoint", duration_s=0.25, quoted='a"b')
    logging.getLogger("tidegate.daemon").info("turn ended", extra=extra)

    time, _, rest = written.getvalue().partition(" ")
    assert time.endswith("Z")
    assert rest == (
        "INFO    tidegate.daemon: turn ended turn=turn_1"
        ' endpoint="my endpoint" duration_s=0.25 quoted="a\\"b"\n'
    )


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_record_is_one_line_whatever_is_in_it(written, log_format):
    configure("info", log_format, stream=written)
    extra = about(turn="a\nb\rc")
    logging.getLogger("tidegate").info("one\ntwo\x1b[31m\udcff", extra=extra)

    assert written.getvalue().count("\n") == 1
    assert "\x1b" not in written.getvalue()


def test_level_holds_for_ours_and_strangers_say_warnings_at_least(written):
    configure("info", "json", stream=written)
    for name in ("tidegate.daemon", "uvicorn.error"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "%d", level)
    assert [(line["logger"], line["message"]) for line in lines(written)] == [
        ("tidegate.daemon", "20"),
        ("tidegate.daemon", "30"),
        ("uvicorn.error", "30"),
    ]


def test_configuring_again_replaces_the_level(written):
    configure("error", "json", stream=written)
    configure("info", "json", stream=written)
    logging.getLogger("tidegate").info("once")

    assert len(lines(written)) == 1


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_words_of_an_exception_are_not_written(written, log_format):
    configure("info", log_format, stream=written)
    for name in ("tidegate.daemon", "uvicorn.error"):
        try:
            failing(SECRET)
        except RuntimeError:
            logging.getLogger(name).exception("it failed")

    text = written.getvalue()
    assert SECRET not in text
    assert text.count("RuntimeError at") == text.count("<- ValueError at") == 2
    assert "daemon/ops/test_logs.py:" in text


def test_words_of_our_own_exceptions_are_not_written_either(written):
    configure("info", "json", stream=written)
    try:
        fail(ConfigurationError(f"model={SECRET!r}: give another"))
    except ConfigurationError:
        logging.getLogger("tidegate.daemon").exception("refused")

    assert SECRET not in written.getvalue()


def test_what_strangers_put_into_their_words_is_not_written(written):
    configure("info", "json", stream=written)
    stranger = logging.getLogger("asyncio")
    stranger.error(f"Task exception was never retrieved\nfuture: <Task {SECRET}>")
    stranger.warning("sent %s to %d of %s", SECRET, 3, SECRET)
    stranger.warning("%(what)s and %(count)d", {"what": SECRET, "count": 3})
    stranger.warning("%d of them", SECRET)
    stranger.warning("%s and %s", SECRET)

    assert SECRET not in written.getvalue()
    assert [line["message"] for line in lines(written)] == [
        "Task exception was never retrieved",
        "sent ... to 3 of ...",
        "... and 3",
        "%d of them",
        "%s and %s",
    ]


def test_all_is_written_for_debugging_but_keys(written):
    configure("debug", "text", keys=[KEY], stream=written)
    try:
        failing(f"{SECRET} {KEY}")
    except RuntimeError:
        logging.getLogger("tidegate.daemon").exception("with %s", KEY, extra=about(turn=KEY))
    logging.getLogger("asyncio").debug("sent %s", SECRET)

    text = written.getvalue()
    assert KEY not in text
    assert text.count(SECRET) > 1
    assert "turn=***" in text


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_keys_are_taken_out_wherever_they_stand(written, log_format):
    keys = [KEY, f"{KEY}-and-more", 'with"quote']
    configure("info", log_format, keys=keys, stream=written)
    extra = about(turn=f"x{KEY}y", path='/with"quote')
    logging.getLogger("tidegate").info("it is %s", f"{KEY}-and-more", extra=extra)

    assert "nobody" not in written.getvalue()
    assert "and-more" not in written.getvalue()
    assert "quote" not in written.getvalue()


def test_record_that_cannot_be_put_together_shows_its_template_alone(written, capsys):
    configure("info", "json", stream=written)
    logging.getLogger("tidegate").info("%d turns", SECRET)

    assert [line["message"] for line in lines(written)] == ["%d turns"]
    assert capsys.readouterr().err == ""


# Turns


def ended(terminal, state, **changes):
    given = {"id": "turn_1", "endpoint": "main", "owner": "0a1b", "api": "chat"}
    record = TurnRecord(**{**given, "state": state, "created_at": 10.0, **changes})
    return SimpleNamespace(record=record, terminal=terminal, ending=None)


def test_turn_that_has_ended_is_one_line(written):
    heard = []
    reports = tuple(
        AttemptReport(number=number, token=40 + number, endpoint="chat") for number in (1, 2)
    )
    completed = TurnCompleted("turn_1", 2, 9, 10.5, Answer(text=SECRET, attempts=reports))
    turn = ended(completed, "completed", ended_at=10.5)
    configure("info", "json", stream=written)
    TurnLog(SimpleNamespace(turn_ended=heard.append)).turn_ended(turn)

    assert heard == [turn]
    assert SECRET not in written.getvalue()
    [line] = lines(written)
    assert line.pop("time")
    assert line == {
        "level": "info",
        "logger": "tidegate.daemon.turns",
        "message": "turn ended",
        "turn": "turn_1",
        "attempt": 2,
        "token": 42,
        "endpoint": "main",
        "owner": "0a1b",
        "api": "chat",
        "state": "completed",
        "duration_s": 0.5,
    }


def test_turn_that_has_failed_is_a_warning_without_the_words_of_its_provider(written):
    failure = Failure(
        kind=FailureKind.BAD_REQUEST, reason="rejected", status=400, detail=SECRET, code=SECRET
    )
    failed = TurnFailed("turn_1", 1, 3, 12.0, failure, Answer(failure=failure))
    configure("info", "json", stream=written)
    TurnLog(SimpleNamespace(turn_ended=lambda _: None)).turn_ended(ended(failed, "failed"))

    [line] = lines(written)
    assert [line[name] for name in ("level", "kind", "reason", "status", "duration_s")] == [
        "warning",
        "bad_request",
        "rejected",
        400,
        2.0,
    ]
    assert SECRET not in written.getvalue()


def test_reason_that_somebody_gave_for_an_interrupt_is_not_written(written):
    interrupted = TurnInterrupted("turn_1", 0, 0, 10.0, SECRET, Answer())
    turn = ended(None, "interrupted")
    turn.ending = interrupted
    configure("info", "json", stream=written)
    TurnLog(SimpleNamespace(turn_ended=lambda _: None)).turn_ended(turn)

    [line] = lines(written)
    assert (line["level"], line["state"], line["attempt"]) == ("info", "interrupted", 0)
    assert SECRET not in written.getvalue()


# Requests


async def behind(scope, receive, send):
    scope["state"]["turn"] = "turn_1"
    await answer(send, SECRET.encode(), 202)


def asked(written, app, *requests, level="info"):
    configure(level, "json", keys=[KEY], stream=written)
    with Server(AccessLog(app)) as server, Client(server.port) as client:
        for method, path, headers in requests:
            client.ask(method, path, headers)
            client.answer()
    return [line for line in lines(written) if line["logger"] == "tidegate.daemon.requests"]


def test_request_is_one_line(written):
    door = Access(behind, Rules(keys=Keys([KEY]), loopback=True))
    headers = f"authorization: Bearer {KEY}\r\ntidegate-secret: {SECRET}\r\n"
    [line] = asked(written, door, ("POST", f"/v1/turns?after=1&key={KEY}", headers))

    assert line.pop("duration_s") >= 0
    assert line.pop("time")
    assert line == {
        "level": "info",
        "logger": "tidegate.daemon.requests",
        "message": "request",
        "turn": "turn_1",
        "owner": owner_of(KEY),
        "method": "POST",
        "path": "/v1/turns",
        "status": 202,
    }
    assert KEY not in written.getvalue()
    assert SECRET not in written.getvalue()


def test_request_that_is_refused_is_a_line_too(written):
    door = Access(behind, Rules(keys=Keys([KEY]), loopback=True))
    headers = "authorization: Bearer a-wrong-one\r\n"
    [line] = asked(written, door, ("GET", "/v1/turns", headers))

    assert line["status"] == 401
    assert "owner" not in line
    assert "a-wrong-one" not in written.getvalue()


def test_probes_are_lines_for_debugging(written):
    requests = [("GET", "/livez", ""), ("GET", "/readyz", ""), ("GET", "/metrics", "")]

    assert [line["path"] for line in asked(written, behind, *requests)] == ["/metrics"]
    written.seek(0)
    written.truncate()
    assert len(asked(written, behind, *requests, level="debug")) == 3


def test_path_is_written_as_it_came_and_cut(written):
    paths = ["/a%20b%0Ac", "/" + "x" * 5000]
    found = asked(written, behind, *[("GET", path, "") for path in paths])

    assert [line["path"] for line in found] == ["/a%20b%0Ac", "/" + "x" * 199 + "..."]


def test_client_that_left_before_an_answer_is_499(written):
    steps = Steps()

    async def waiting(scope, receive, send):
        scope["extensions"][CONNECTION].when_gone(lambda: steps.tell("gone"))
        steps.tell("asked")
        await scope["extensions"][CONNECTION].gone.wait()

    async def watched(scope, receive, send):
        await AccessLog(waiting)(scope, receive, send)
        steps.tell("over")

    configure("info", "json", stream=written)
    with Server(watched) as server, Client(server.port) as client:
        client.ask()
        assert steps.next() == "asked"
        client.leave()
        assert [steps.next(), steps.next()] == ["gone", "over"]

    assert [line["status"] for line in lines(written)] == [499]


def test_request_that_fails_is_500_and_its_words_are_not_written(written):
    async def broken(scope, receive, send):
        raise ValueError(SECRET)

    [line] = asked(written, broken, ("GET", "/", ""))

    assert line["status"] == 500
    assert SECRET not in written.getvalue()
    assert "ValueError at daemon/ops/test_logs.py" in written.getvalue()
