"""``tidegate local``: the weights of the model that runs on this machine."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from tidegate.local.weights import SMOLLM2, fetch


app = App(name="local", help="The model that runs on this machine, without a key or a network.")


@app.command(name="fetch")
def fetch_weights(
    *,
    force: Annotated[bool, Parameter(negative="")] = False,
    verify: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Download the weights of the local model (98 MB) into the cache, unless they are there.

    It may be interrupted and run again.

    Args:
        force: Download them even if they are there.
        verify: Hash the file that is there, and replace it if it is damaged.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    # The bar goes to stderr, so that stdout is the path and nothing else.
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(SMOLLM2.name, total=None, visible=False)

        def show(done_bytes: int, total_bytes: int | None) -> None:
            bar.update(task, completed=done_bytes, total=total_bytes, visible=True)

        path = fetch(show, force=force, verify=verify)
    print(path)
