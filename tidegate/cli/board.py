"""``tidegate top`` on the screen: lanes in a table that is drawn anew twice a second.

Path: ``cli/daemon_client.py``, ``cli/overview.py`` -> this -> the terminal
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from tidegate.cli.daemon_client import DaemonClient, DaemonError
from tidegate.cli.overview import Lane, Overview, chars, seconds, short, standing, strip
from tidegate.cli.render import harmless


LOOK_S = 0.5
SPANS_S = {30.0: "30 s", 120.0: "2 min", 600.0: "10 min"}
REASON = "tidegate top"
ENDED_MAX = 20
STRIP_LEAST = 16
_COLUMNS = {"turn": 8, "model": 18, "endpoint": 12, "age": 10, "chars": 7}
_RIGHT = ("age", "chars")
_STANDING = 29
_PADDING = 2
_ORDER = {"running": 0, "queued": 1}


class Board(App[None]):
    """The lanes of a daemon.

    Args:
        client: of the daemon.

    Attributes:
        overview: what was seen last; None before the first look.
        armed: the turn that one more ``i`` interrupts.
    """

    TITLE = "tidegate top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #said { height: 1; padding: 0 1; color: $text-warning; }
    DataTable { height: 1fr; }
    DataTable > .datatable--cursor { background: $surface-lighten-2; }
    DataTable > .datatable--header { background: $surface; color: $text-muted; text-style: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("i", "interrupt", "interrupt"),
        Binding("w", "widen", "time shown"),
        Binding("escape", "disarm", show=False),
    ]

    def __init__(self, client: DaemonClient) -> None:
        super().__init__()
        self._client = client
        self._span_s = 120.0
        self._looking = False
        self.overview: Overview | None = None
        self.armed = ""

    def compose(self) -> ComposeResult:
        """Make the parts of the screen."""
        yield Static(id="head")
        yield DataTable(cursor_type="row", cursor_foreground_priority="renderable")
        yield Static(id="said")
        yield Footer()

    async def on_mount(self) -> None:
        """Begin to look."""
        self._columns()
        self.set_interval(LOOK_S, self.look)
        await self.look()

    def on_resize(self, _event: events.Resize) -> None:
        """Use all of the screen."""
        self._columns()
        self._draw()

    async def look(self) -> None:
        """Ask the daemon how things stand, and draw it."""
        if self._looking:
            return
        self._looking = True
        try:
            self.overview = await asyncio.to_thread(self._client.overview)
        except DaemonError as error:
            self._head(Text(harmless(str(error)), "bold red"))
        else:
            self._draw()
        finally:
            self._looking = False

    @property
    def chosen(self) -> Lane | None:
        """The turn under the cursor."""
        table = self._table
        if not table.is_valid_row_index(table.cursor_row) or self.overview is None:
            return None
        turn = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return next((each for each in self.overview.lanes if each.id == turn), None)

    def action_widen(self) -> None:
        """Show the next span of time."""
        spans = [*SPANS_S]
        self._span_s = spans[(spans.index(self._span_s) + 1) % len(spans)]
        self._draw()

    def action_disarm(self) -> None:
        """Interrupt nothing."""
        self.armed = ""
        self._say("")

    async def action_interrupt(self) -> None:
        """Interrupt the turn under the cursor, when asked twice."""
        lane = self.chosen
        if lane is None or lane.ended_at is not None:
            self._say("choose a turn that runs or waits")
            return
        if self.armed != lane.id:
            self.armed = lane.id
            self._say(f"interrupt {lane.model} ({short(lane.id)})? once more i for yes, Esc for no")
            return
        self.armed = ""
        try:
            found = await asyncio.to_thread(self._client.interrupt, lane.id, REASON)
        except DaemonError as error:
            self._say(str(error))
        else:
            self._say(f"{short(lane.id)}: {found['state']}")
        await self.look()

    def on_data_table_row_highlighted(self, _event: DataTable.RowHighlighted) -> None:
        """Take another choice for a no."""
        chosen = self.chosen
        if self.armed and (chosen is None or chosen.id != self.armed):
            self.action_disarm()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one(DataTable)

    @property
    def _width(self) -> int:
        rest = sum(_COLUMNS.values()) + _STANDING + (len(_COLUMNS) + 2) * _PADDING
        return max(STRIP_LEAST, self.size.width - rest)

    def _columns(self) -> None:
        table = self._table
        table.clear(columns=True)
        for name, width in _COLUMNS.items():
            label = Text(name, justify="right" if name in _RIGHT else "left")
            table.add_column(label, width=width, key=name)
        table.add_column("", width=self._width, key="strip")
        table.add_column("how it stands", width=_STANDING, key="standing")

    def _draw(self) -> None:
        overview = self.overview
        if overview is None:
            return
        table, before = self._table, self.chosen
        lanes = _shown(overview)
        if [each.id for each in lanes] != [key.value for key in table.rows]:
            table.clear()
            for lane in lanes:
                table.add_row(*self._cells(lane, overview.now_s), key=lane.id)
            kept = [index for index, each in enumerate(lanes) if before and each.id == before.id]
            table.move_cursor(row=kept[0] if kept else 0)
        else:
            names = (*_COLUMNS, "strip", "standing")
            for lane in lanes:
                for name, cell in zip(names, self._cells(lane, overview.now_s), strict=True):
                    table.update_cell(lane.id, name, cell)
        self._head(_summary(overview, self._span_s))

    def _cells(self, lane: Lane, now_s: float) -> tuple[Text, ...]:
        until_s = now_s if lane.ended_at is None else lane.ended_at
        return (
            Text(short(lane.id), "dim"),
            Text(harmless(lane.model), "bold"),
            Text(harmless(lane.endpoint)),
            Text(seconds(until_s - lane.created_at), justify="right"),
            Text(f"{chars(lane):,}", justify="right"),
            strip(lane, now_s, self._span_s, self._width),
            standing(lane, now_s),
        )

    def _head(self, text: Text) -> None:
        self.query_one("#head", Static).update(text)

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(Text(harmless(text)))


def _shown(overview: Overview) -> list[Lane]:
    """Return what is drawn: what runs, the oldest first, what waits, and what ended lately."""
    alive = [each for each in overview.lanes if each.ended_at is None]
    alive.sort(key=lambda each: (_ORDER.get(each.state, 2), each.queue_place or 0, each.created_at))
    ended = [each for each in overview.lanes if each.ended_at is not None]
    return alive + ended[:ENDED_MAX]


def _summary(overview: Overview, span_s: float) -> Text:
    daemon = overview.daemon
    text = Text("tidegate ", "bold")
    text.append(f"{daemon.version}   ", "dim")
    for value, name in ((daemon.running, "running"), (daemon.queued, "waiting")):
        text.append(f"{value} ", "bold")
        text.append(f"{name}   ")
    text.append(f"{daemon.workers} workers   up {seconds(daemon.uptime_s)}   ")
    text.append(f"the last {SPANS_S[span_s]}   ", "dim")
    if daemon.draining:
        text.append("draining", "bold yellow")
    if not daemon.journal_well:
        text.append("the journal cannot be written", "bold red")
    return text
