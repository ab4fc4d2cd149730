"""Makes the pictures in docs/images: ``python -m tests.real.pictures``, which takes over a minute.

A real daemon in front of scripted providers: nothing in the pictures is painted.
"""

import asyncio
import contextlib
import tempfile
import threading
import time
from pathlib import Path

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import DaemonProcess
from tests.real.browser import Page, chromium
from tidegate.cli.board import Board
from tidegate.cli.daemon_client import Address, DaemonClient
from tidegate.lab import Answer, End, Lab, chat, messages, wait


IMAGES = Path(__file__).parents[2] / "docs/images"
WIRES = {
    "anthropic": "messages",
    "anthropic-eu": "messages",
    "openai": "chat",
    "azure": "chat",
    "gpu-box-1": "chat",
    "gpu-box-2": "chat",
}
STORY = (
    "The tide gate at the river's mouth has two leaves of oak, each as tall as a house. When the "
    "sea stands higher than the river, it presses them shut; when the ebb comes, the river opens "
    "them again, and nobody has to be there.\n\nWhat makes this work is an order of events, not a "
    "lock: the water that must not come in is what closes the door. "
)


def told(make, every_s, times=60):
    """The story, a few words at a time."""
    pieces = [f"{word} " for word in (STORY * 8).split(" ")]
    grouped = ["".join(pieces[index : index + 3]) for index in range(0, len(pieces), 3)]
    return [step for piece in grouped[:times] for step in (make(piece), wait(every_s))]


def ask(client, name, model, **policy):
    payload = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 999}
    body = {"endpoint": name, "payload": payload, "policy": policy}
    return client.post("/v1/turns", json=body).raise_for_status().json()["id"]


def read_all(daemon, turn):
    """Read a turn's events to its end, as a client would."""
    with daemon.client() as client, client.stream("GET", f"/v1/turns/{turn}/events") as response:
        for _ in response.iter_raw():
            pass


def reader(daemon, turn):
    threading.Thread(target=read_all, args=(daemon, turn), daemon=True).start()


def play(daemon, client, labs):
    """Let it all happen; when this returns, it is the moment to look."""

    def start(name, model, *answers, **policy):
        labs[name].add(*answers)
        return ask(client, name, model, **policy)

    steady = Answer([messages.start(), messages.text_start(), *told(messages.text, 0.4, 300)])
    start("anthropic", "claude-opus-4-5", steady, stale_after_s=180)
    cut = Answer([chat.role(), *told(chat.text, 0.3, 60), End.CUT])
    more = Answer([chat.role(), wait(2.5), *told(chat.text, 0.25, 300)])
    patience = {"after_visible_text": "restart", "backoff_s": [5.0], "stale_after_s": 120}
    reader(daemon, start("openai", "gpt-5.2", cut, more, **patience))
    stalls = Answer([chat.role(), *told(chat.text, 0.25, 12), End.HOLD])
    whole = chat.answer(STORY, steps=[wait(4.0), chat.usage(812, 96)])
    start("gpu-box-1", "qwen3-32b", stalls, whole, stale_after_s=8, backoff_s=[1.5])
    time.sleep(12)
    tools = [
        chat.role(),
        chat.reasoning("The tables of the harbour office are what is asked for."),
        wait(3),
        chat.text("I look that up."),
        chat.tool(0, id="call_1", name="tide_table", arguments='{"port": "Husum"}'),
        wait(2),
        chat.finish("tool_calls"),
        chat.usage(1204, 61),
        chat.done(),
    ]
    start("azure", "gpt-5.2-mini", Answer(tools))
    silent = Answer([chat.role(), *told(chat.text, 0.3, 40), End.HOLD])
    start("gpu-box-2", "llama-3.3-70b", silent, stale_after_s=45)
    time.sleep(10)
    busy = chat.error_answer(429, "slow down", code="rate_limit_exceeded")
    broken = chat.error_answer(503, "try again")
    third = Answer([chat.role(), wait(1.5), *told(chat.text, 0.3, 300)])
    start("azure", "gpt-5.2-mini", busy, broken, third, backoff_s=[6.0, 9.0], stale_after_s=120)
    time.sleep(22)
    too_long = chat.error_answer(400, "the context is too long", code="context_length_exceeded")
    start("gpu-box-1", "qwen3-32b", too_long)
    unwanted = Answer([messages.start(), messages.text_start(), *told(messages.text, 0.2, 300)])
    turn = start("anthropic-eu", "claude-haiku-4-5", unwanted)
    time.sleep(8)
    late = Answer([messages.start(), End.HOLD])
    start("anthropic", "claude-opus-4-5", late, first_event_timeout_s=90)
    start("anthropic-eu", "claude-haiku-4-5", unwanted)
    for _ in range(2):
        ask(client, "gpu-box-1", "qwen3-32b")
    time.sleep(3)
    client.post(f"/v1/turns/{turn}/interrupt", json={"reason": "enough"})
    time.sleep(9)


@contextlib.contextmanager
def scene():
    """A daemon with much going on; gives it."""
    with contextlib.ExitStack() as stack:
        labs = {name: stack.enter_context(Lab()) for name in WIRES}
        config = 'listen = "127.0.0.1:0"\nmax_running = 6\n'
        config += "".join(endpoint(lab, WIRES[name], name) for name, lab in labs.items())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        daemon = DaemonProcess(folder, config, {"TEST_PROVIDER_KEY": "provider-key"})
        client = stack.enter_context(daemon.client())
        try:
            play(daemon, client, labs)
            yield daemon
        finally:
            for lane in client.get("/v1/lanes").json()["lanes"]:
                client.post(f"/v1/turns/{lane['id']}/interrupt")
            daemon.end()


def of_page(daemon, address):
    """Photograph the page: at a glance, with a timeline, and on a telephone in the light."""
    with Page(address, 1280, 860) as page:
        page.open(daemon.url)
        page.until("document.querySelectorAll('#live .lane').length > 4")
        page.screenshot(IMAGES / "page.png")
        page.click("#live .lane:nth-child(2) .who")
        page.until("document.querySelectorAll('#rows [role=row]').length > 5")
        # The slider, to where the first attempt's words were taken back.
        page.js("var slider = document.querySelector('#slider'); slider.value = 62")
        page.js("slider.dispatchEvent(new Event('input'))")
        page.screenshot(IMAGES / "timeline.png")
    with Page(address, 400, 860, dark=False) as page:
        page.open(daemon.url)
        page.until("document.querySelectorAll('#live .lane').length > 4")
        page.screenshot(Path(tempfile.gettempdir()) / "page-narrow.png")
        page.click("#live .lane:nth-child(2) .who")
        page.until("document.querySelectorAll('#rows [role=row]').length > 5")
        page.screenshot(Path(tempfile.gettempdir()) / "page-narrow-turn.png")


async def of_top(client):
    """Photograph ``tidegate top``."""
    board = Board(client)
    async with board.run_test(size=(132, 18)) as pilot:
        await board.look()
        await pilot.pause()
        (IMAGES / "top.svg").write_text(board.export_screenshot(title="tidegate top"))


def main():
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium(Path(folder)) as address,
        scene() as daemon,
        DaemonClient(Address(daemon.url)) as client,
    ):
        of_page(daemon, address)
        asyncio.run(of_top(client))


if __name__ == "__main__":
    main()
