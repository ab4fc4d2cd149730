"""``tidegate config``: what the daemon is told, by whom, and what it means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.usage import UsageError
from tidegate.daemon.config.check import Report, explain
from tidegate.daemon.config.load import InvalidConfig, load
from tidegate.daemon.config.starting import check_start


WRONG = 2
FILE_COLUMNS = 200
"""How wide a line may be that goes into a file or to a program."""

app = App(name="config", help="What the daemon is told, by whom, and what it means.")


@app.command
def check(
    *, config: Path | None = None, json: Annotated[bool, Parameter(negative="")] = False
) -> int:
    """Explain each value and where it came from, or say all that is wrong.

    Keys are shown as references only. Exit codes: 0 the configuration can be used, 2 it cannot,
    and ``tidegate serve`` would not start.

    Args:
        config: The file; by default ./tidegate.toml, then the one in the user's config folder.
        json: Print the report as JSON.
    """
    try:
        loaded = load(config)
        check_start(loaded)
        report = explain(loaded)
    except InvalidConfig as error:
        if not json:
            raise UsageError(str(error)) from error
        _print_json({"errors": error.problems})
        return WRONG
    if json:
        _print_json(msgspec.structs.asdict(report) | {"errors": ()})
    else:
        _print(report)
    return 0


def _print_json(what: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(what)).decode())


def _print(report: Report) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else FILE_COLUMNS)
    console.print(Text(report.path or "no file: all that is not said elsewhere is built in"))
    console.print()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for row in report.rows:
        table.add_row(*(Text(each) for each in (row.key, row.value, row.origin, row.meaning)))
    console.print(table)
    for note in report.notes:
        console.print(Text("\n! ", style="yellow") + Text(note))
