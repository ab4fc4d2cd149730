"""``tidegate tail``: reads a turn of a daemon as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tidegate.cli.extras import daemon_extra
from tidegate.cli.screen import Screen, print_json
from tidegate.protocol.events import AnyEvent, AttemptStarted, TurnCompleted, TurnInterrupted


if TYPE_CHECKING:
    from tidegate.cli.daemon_client import DaemonError

INTERRUPTED = 130
EXPIRED = 410
_STATUS = {"completed": 0, "interrupted": INTERRUPTED}


def tail(
    turn: str,
    /,
    *,
    after: Annotated[int, Parameter(allow_leading_hyphen=True)] = -1,
    json: Annotated[bool, Parameter(negative="")] = False,
    url: str | None = None,
    key: str | None = None,
) -> int:
    """Write a turn's answer as it comes, from its beginning; leaving does nothing to the turn.

    The answer goes to standard output; attempts, retries and notices go to standard error. When
    the connection is lost, it is taken up where it was. Exit codes are those of the turn: 0 it
    completed, 130 it was interrupted, 1 it failed, or there is no such turn or no daemon; 2 wrong
    use.

    Args:
        turn: Its id, as `tidegate ps` shows it.
        after: Leave out all events up to this offset.
        json: Print the events instead, one a line.
        url: The daemon's address; by default TIDEGATE_URL, then where the configuration listens.
        key: Where the key is, as env:NAME; by default env:TIDEGATE_KEY.
    """
    with daemon_extra():
        from tidegate.cli.daemon_client import (  # noqa: PLC0415
            DaemonClient,
            DaemonError,
            address_from,
            turn_id,
        )
    screen = Screen()

    def lost(why: str) -> None:
        screen.remark(f"{why}; trying again")

    with DaemonClient(address_from(url, key)) as client:
        events = client.follow(turn_id(turn), after, lost)
        try:
            last = _print_json(events) if json else _show(events, screen)
        except DaemonError as error:
            if error.status != EXPIRED:
                raise
            return _expired(error, screen)
        finally:
            screen.close()
    return _status(last)


def _show(events: Iterator[AnyEvent], screen: Screen) -> AnyEvent | None:
    last = None
    for event in events:
        if isinstance(event, AttemptStarted) and event.attempt > 1:
            screen.remark(f"attempt {event.attempt}")
        screen.show(event)
        last = event
    return last


def _print_json(events: Iterator[AnyEvent]) -> AnyEvent | None:
    last = None
    for event in events:
        print_json(event)
        last = event
    return last


def _expired(error: DaemonError, screen: Screen) -> int:
    """Say of a turn whose events are no longer kept how it ended."""
    state = str(error.body.get("turn", {}).get("state", "unknown"))
    screen.remark(f"the turn's events are no longer kept; it ended as {state}")
    return _STATUS.get(state, 1)


def _status(last: AnyEvent | None) -> int:
    if isinstance(last, TurnCompleted):
        return 0
    return INTERRUPTED if isinstance(last, TurnInterrupted) else 1
