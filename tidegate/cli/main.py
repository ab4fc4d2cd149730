"""The ``tidegate`` command: which commands there are, and what an exit code means."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from cyclopts import App, CycloptsError

from tidegate.cli.render import harmless
from tidegate.cli.usage import UsageError
from tidegate.errors import TidegateError


OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130


def _version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"


app = App(
    name="tidegate",
    help="LLM provider streams with one answer, one writer, and nothing late.",
    version=_version,
    # They are exit codes here, for every command.
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
# By name, so that no command waits for the imports of another; their help is said here for the
# same reason.
app.command(
    "tidegate.cli.commands.run:run",
    name="run",
    help="Ask a model and stream its answer to the terminal.",
)
app.command(
    "tidegate.cli.commands.serve:serve",
    name="serve",
    help="Serve the providers' own APIs, with turns that survive their clients.",
)
app.command(
    "tidegate.cli.commands.top:top",
    name="top",
    help="Watch a daemon's turns in the terminal, and interrupt them.",
)
app.command(
    "tidegate.cli.commands.ps:ps",
    name="ps",
    help="List a daemon's turns.",
)
app.command(
    "tidegate.cli.commands.tail:tail",
    name="tail",
    help="Read a turn of a daemon as it comes.",
)
app.command(
    "tidegate.cli.commands.stop:stop",
    name="stop",
    help="Interrupt a turn of a daemon.",
)
app.command(
    "tidegate.cli.commands.demo:demo",
    name="demo",
    help="See in half a minute what this is for.",
)
app.command(
    "tidegate.cli.commands.lab:lab",
    name="lab",
    help="Serve a scripted provider on loopback, until Ctrl-C.",
)
app.command(
    "tidegate.cli.commands.local:app",
    name="local",
    help="The model that runs on this machine, without a key or a network.",
)
app.command(
    "tidegate.cli.commands.config:app",
    name="config",
    help="What the daemon is told, by whom, and what it means.",
)
app.command(
    "tidegate.cli.commands.doctor:doctor",
    name="doctor",
    help="Look at what is installed, and try a turn.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 failed, 2 used wrongly, 130 interrupted.

    Args:
        arguments: the words behind ``tidegate``; None takes those of this process.
    """
    sys.exit(_status(arguments))


def _status(arguments: Sequence[str] | None) -> int:
    try:
        status = app(arguments)
        # Whoever reads has gone or not: this is the last moment to find out quietly.
        sys.stdout.flush()
    except CycloptsError:
        return USAGE  # it has printed what is wrong
    except UsageError as error:
        return _complain(error, USAGE)
    except TidegateError as error:
        return _complain(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # As in ``| head``. The interpreter flushes once more at its end, to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status if isinstance(status, int) else OK


def _complain(error: Exception, status: int) -> int:
    print(harmless(f"tidegate: {error}"), file=sys.stderr)
    return status
