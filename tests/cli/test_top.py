"""``tidegate top`` with textual's own pilot, against a real daemon; and its lines alone."""

import asyncio
import subprocess
import sys

import pytest

from tests.cli.daemons import ENVIRON, ask, held, silent, until
from tidegate.cli.board import Board
from tidegate.cli.daemon_client import Address, DaemonClient
from tidegate.cli.overview import Attempt, Lane, strip
from tidegate.lab import Answer, End, chat


@pytest.fixture
def watch(daemon):
    """Run a coroutine with a board and its pilot."""

    def run(play, size=(132, 20)):
        async def main():
            with DaemonClient(Address(daemon.url)) as client:
                board = Board(client)
                async with board.run_test(size=size) as pilot:
                    await board.look()
                    await pilot.pause()
                    return await play(board, pilot)

        return asyncio.run(main())

    return run


def shown(board):
    """Return all that is on the screen, line by line."""
    return [
        "".join(part.text for part in line) for line in board.screen._compositor.render_strips()
    ]


def line_with(board, word):
    [line] = [line for line in shown(board) if word in line]
    return line


def test_lanes_of_running_turns_are_drawn(watch, daemon, lab):
    lab.add(Answer([chat.role(), End.CUT]), held("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 4)

    async def play(board, _pilot):
        return line_with(board, "test-model"), shown(board)[0]

    line, head = watch(play)
    assert turn.removeprefix("turn_")[:8] in line
    assert "┃" in line
    assert "attempt 2, makes progress" in line
    assert "1 running" in head
    lab.open("shown")


def test_i_twice_interrupts_the_chosen_turn(watch, daemon, lab):
    lab.add(silent("Hel"), held("lo"))
    first = ask(daemon, model="first-model")
    until(daemon, first, 2)
    second = ask(daemon, model="second-model")
    until(daemon, second, 2)

    async def play(board, pilot):
        await pilot.press("i")
        assert board.armed == first
        await pilot.press("down")
        assert board.armed == ""
        await pilot.press("up", "i", "escape")
        assert board.armed == ""
        await pilot.press("i", "i")
        await pilot.pause()
        await board.look()
        return line_with(board, "first-model"), line_with(board, "second-model")

    line, other = watch(play)
    assert "interrupted: tidegate top" in line
    assert "makes progress" in other
    assert lab.wait_closed().how in {"eof", "reset"}
    lab.open("shown")


def test_span_changes_and_q_quits(watch):
    async def play(board, pilot):
        before = shown(board)[0]
        await pilot.press("w")
        await pilot.pause()
        after = shown(board)[0]
        await pilot.press("q")
        return before, after, board._exit

    before, after, left = watch(play)
    assert "the last 2 min" in before
    assert "the last 10 min" in after
    assert left


def test_narrow_screen_is_no_error(watch, daemon, lab):
    lab.add(held("Hello"))
    ask(daemon)

    async def play(board, pilot):
        await pilot.resize_terminal(200, 30)
        await pilot.pause()
        return line_with(board, "test-model")

    assert "test-model" in watch(play, size=(40, 10))
    lab.open("shown")


def test_daemon_that_goes_is_said_and_waited_for(watch, daemon):
    async def play(board, pilot):
        await asyncio.to_thread(daemon.end)
        await board.look()
        await pilot.pause()
        return shown(board)[0]

    assert "no daemon answers" in watch(play)


def test_nobody_there_is_said_before_the_screen_is_taken(tidegate):
    status, output, errors = tidegate("top", "--url", "http://127.0.0.1:1", env=ENVIRON)

    assert (status, output) == (1, "")
    assert "tidegate serve" in errors


def test_what_is_missing_is_said():
    script = (
        f"import sys; sys.path[:] = {sys.path!r}; sys.modules['{{}}'] = None\n"
        "from tidegate.cli.main import main; main(['top', '--url', 'http://127.0.0.1:1'])"
    )
    for name in ("httpx", "textual"):
        done = subprocess.run(
            [sys.executable, "-c", script.format(name)],
            capture_output=True,
            check=False,
            text=True,
            timeout=50,
        )
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert f"need {name}, which is not" in done.stderr.replace("needs", "need")
        assert "tidegate[daemon]" in done.stderr


def test_without_a_terminal_it_says_what_to_use_instead(tidegate, daemon):
    status, output, errors = tidegate("top", "--url", daemon.url, env=ENVIRON)

    assert (status, output) == (2, "")
    assert "tidegate ps" in errors


def lane(*attempts, **fields):
    given = {"id": "t", "state": "running", "endpoint": "e", "wire": "chat", "model": "m"}
    return Lane(**{**given, "api": "turns", "created_at": 0.0, "attempts": attempts, **fields})


def test_strip_has_now_at_its_right_end():
    failed = Attempt(1, "failed", 0.0, 2.0, 3.0, 4.0, failure="truncated", void=True)
    runs = Attempt(2, "running", 6.0, 8.0, 10.0)

    assert strip(lane(failed, runs), 10.0, 10.0, 10).plain == "░░▒▒┃╌░░██"
    assert strip(lane(failed), 10.0, 10.0, 10).plain == "░░▒▒┃╌╌╌╌╌"
    assert strip(lane(failed, runs), 16.0, 10.0, 10).plain == "░░████████"


def test_strip_of_a_silent_turn_grows_late():
    runs = Attempt(1, "running", 0.0, 1.0, 5.0)
    silence = {"quiet_since_s": 5.0, "quiet_s": 5.0}

    early = strip(lane(runs, **silence, quiet_limit_s=10.0), 10.0, 10.0, 10)
    late = strip(lane(runs, **silence, quiet_limit_s=6.0), 10.0, 10.0, 10)
    assert early.plain == late.plain == "░████▒▒▒▒▒"
    assert early.spans[-1].style != late.spans[-1].style


def test_strip_of_an_ended_turn_is_its_whole_life():
    completed = Attempt(1, "completed", 2.0, 4.0, 9.0, 10.0)
    ended = lane(completed, state="completed", ended_at=10.0)

    assert strip(ended, 999.0, 30.0, 10).plain == "╌╌░░██████"
