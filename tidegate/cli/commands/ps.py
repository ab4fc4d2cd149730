"""``tidegate ps``: the turns of a daemon."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.extras import daemon_extra
from tidegate.cli.overview import STATES, Lane, Overview, chars, seconds, standing
from tidegate.cli.render import harmless


FILE_COLUMNS = 200
"""How wide a line may be that goes into a file or to a program."""

OPEN = ("running", "queued")
COLUMNS = ("turn", "state", "endpoint", "model", "attempt", "age", "chars", "how it stands")
_RIGHT = ("attempt", "chars")


def ps(
    *,
    all: Annotated[bool, Parameter(negative="")] = False,  # noqa: A002 - the option's name
    json: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
    url: str | None = None,
    key: str | None = None,
) -> int:
    """List the turns of a daemon that run and wait.

    Exit codes: 0 done, 1 the daemon cannot be reached or refuses, 2 wrong use.

    Args:
        all: Those that have ended lately, too.
        json: Print what the daemon says as JSON.
        quiet: Print their ids alone, for other commands.
        url: The daemon's address; by default TIDEGATE_URL, then where the configuration listens.
        key: Where the key is, as env:NAME; by default env:TIDEGATE_KEY.
    """
    with daemon_extra():
        from tidegate.cli.daemon_client import DaemonClient, address_from  # noqa: PLC0415
    with DaemonClient(address_from(url, key)) as client:
        overview = client.overview()
    lanes = [each for each in overview.lanes if all or each.state in OPEN]
    if json:
        shown = {"daemon": overview.daemon, "now_s": overview.now_s, "turns": lanes}
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
        return 0
    if quiet:
        print(*(harmless(each.id) for each in lanes), sep="\n", end="\n" if lanes else "")
        return 0
    _print(overview, lanes)
    return 0


def _print(overview: Overview, lanes: list[Lane]) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else FILE_COLUMNS)
    table = Table.grid(padding=(0, 2))
    for name in COLUMNS:
        table.add_column(no_wrap=True, justify="right" if name in _RIGHT else "left")
    table.add_row(*(Text(name.upper(), "dim") for name in COLUMNS))
    for lane in lanes:
        until_s = overview.now_s if lane.ended_at is None else lane.ended_at
        table.add_row(
            Text(harmless(lane.id)),
            Text(lane.state, STATES.get(lane.state, "default")),
            Text(harmless(lane.endpoint)),
            Text(harmless(lane.model)),
            Text(str(lane.attempts[-1].number if lane.attempts else 0)),
            Text(seconds(until_s - lane.created_at)),
            Text(f"{chars(lane):,}"),
            standing(lane, overview.now_s),
        )
    console.print(table)
