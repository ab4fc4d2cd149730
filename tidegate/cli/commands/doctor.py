"""``tidegate doctor``: what is here, whether it works, and what to do if not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.checkup import Report, examine


def doctor(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Look at what is installed, and try a turn against a provider on loopback.

    Exit codes: 0 if turns work here, 1 if not.

    Args:
        json: Print the report as JSON.
    """
    report = examine()
    if json:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        _print(report)
    return 1 if any(problem.grave for problem in report.problems) else 0


def _print(report: Report) -> None:
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(report):
        table.add_row(name, text)
    console.print(table)
    for problem in report.problems:
        mark = Text("✗ " if problem.grave else "! ", style="red" if problem.grave else "yellow")
        console.print()
        console.print(mark + Text(problem.what))
        console.print(Text(f"  {problem.hint}", style="dim"))
    if not report.problems:
        console.print(Text("\nAll is well.", style="green"))


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    yield "python", f"{report.python} on {report.system}"
    yield "tidegate", report.tidegate or "unknown"
    yield "packages", _versions(report.packages)
    for name, found in report.extras.items():
        yield f"extra {name}", _versions(found)
    yield "weights", report.weights or "none"
    yield "keys set", ", ".join(report.keys) or "none"
    yield "settings set", ", ".join(report.variables) or "none"
    if report.workers is not None:
        started = report.workers
        first = f"the first ready after {started.first_s:.2f} s"
        further = f"a further one after {started.further_s * 1000:.0f} ms"
        yield "workers", f"by {started.method}: {first}, {further}"
    trial = report.self_test
    if trial.first_delta_s is not None:
        took = f"first delta after {trial.first_delta_s * 1000:.1f} ms"
        yield "self-test", f"passed, {took}"
    else:
        yield "self-test", "failed"


def _versions(found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
