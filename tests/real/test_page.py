"""The live page in a real browser, in front of a real daemon and a scripted provider."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.daemon.e2e import conftest as daemons
from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT, DaemonProcess
from tests.real.browser import Page, chromium
from tidegate.daemon.page.routes import FILES
from tidegate.lab import Answer, End, Lab, chat, gate


pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

serve = daemons.serve
ROOT = Path(__file__).parents[2]
EVIL = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
LANE = "#live .lane[data-turn='{}']"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def house(serve, lab):
    """A daemon, its client, and a tab that must have nothing to complain about."""
    return serve(endpoint(lab))


@pytest.fixture
def page(browser, house):
    with Page(browser) as page:
        page.open(house.url)
        page.until("document.querySelector('#link')?.dataset.how === 'live'")
        yield page
        assert page.complaints == []
        foreign = [url for url in page.urls if not url.startswith((house.url, "about:"))]
        assert foreign == []
        assert page.js("window.hacked") is None


@pytest.fixture
def client(house):
    with house.client() as client:
        yield client


def ask(client, **more):
    body = {"endpoint": "main", "payload": PROMPT, **more}
    return client.post("/v1/turns", json=body).raise_for_status().json()["id"]


def held(*words):
    return Answer([chat.role(), *map(chat.text, words), gate("shown"), chat.finish(), chat.done()])


def rows(page):
    """Return the cells of all rows that are on the screen."""
    return page.js(
        "[...document.querySelectorAll('#rows [role=row]')].map("
        "(row) => [...row.children].map((cell) => cell.textContent))"
    )


def test_lanes_appear_with_retries_and_fences_and_fade_when_over(page, client, lab):
    assert page.js("document.querySelector('#calm').hidden") is False
    lab.add(Answer([chat.role(), End.CUT]), held("Hello"))
    turn = ask(client)
    lane = LANE.format(turn)
    page.until(f"document.querySelector({json.dumps(lane + ' .piece.running')})")

    assert page.text(f"{lane} strong") == "test-model"
    assert page.js(f'document.querySelectorAll("{lane} .mark.fence").length') == 1
    page.until(f"document.querySelector(\"{lane} .facts\").textContent.includes('attempt 2')")
    assert page.text("#running") == "1"
    lab.open("shown")
    page.until(f"document.querySelector(\"#ended .lane[data-turn='{turn}']\")")
    assert "completed" in page.text("#ended .lane .facts")
    assert page.js("document.querySelector('#ended .piece.completed') !== null")


def test_silence_fills_the_clock(page, client, lab):
    lab.add(Answer([chat.role(), chat.text("Hello"), End.HOLD]))
    turn = ask(client, policy={"stale_after_s": 8.0, "retries": 0, "stale_giveup": 0})
    lane = LANE.format(turn)

    page.until(f"document.querySelector({json.dumps(lane + ' .piece.quiet')})")
    part = f"document.querySelector(\"{lane} .ring\").style.getPropertyValue('--part')"
    assert 0 < float(page.js(part)) < 1
    page.until(f"Number({part}) > 0.5")
    page.until("document.querySelector('#ended .facts')?.textContent.includes('stalled')")


def test_interrupt_takes_two_clicks_and_closes_the_providers_socket(page, client, lab):
    lab.add(Answer([chat.role(), chat.text("Hello"), End.HOLD]))
    turn = ask(client)
    page.until(f"document.querySelector({json.dumps(LANE.format(turn) + ' .piece.running')})")
    stop = f"{LANE.format(turn)} .stop"
    page.click(stop)
    assert page.text(stop) == "Really?"
    page.press("Escape")
    assert page.text(stop) == "Interrupt"
    assert client.get(f"/v1/turns/{turn}").json()["state"] == "running"

    page.click(stop)
    page.click(stop)

    assert lab.wait_closed().how in {"eof", "reset"}
    page.until("document.querySelector('.facts')?.textContent.includes('the live page')")
    assert client.get(f"/v1/turns/{turn}").json()["state"] == "interrupted"


def test_timeline_opens_follows_and_scrolls_back(page, client, lab):
    words = [f"{number} " for number in range(1500)]
    steps = [chat.role(), *map(chat.text, words), gate("shown"), chat.text("end")]
    lab.add(Answer([*steps, chat.finish(), chat.done()]))
    turn = ask(client)
    page.click(f"{LANE.format(turn)} .who")
    page.until("document.querySelector('#text').textContent.endsWith('1499 ')")
    # As a table of 1,500 rows, of which those are there that can be seen.
    assert page.js("document.querySelector('#rows').getAttribute('aria-rowcount')") == "1501"
    assert len(rows(page)) < 100
    assert rows(page)[-1][3] == "1499 "

    page.js("document.querySelector('#rows').scrollTop = 0")
    page.until("document.querySelector('#rows [role=cell]').textContent === '0'")
    assert rows(page)[0][2:] == ["attempt.started", rows(page)[0][3]]
    page.click("#rows [data-offset='2']")
    assert page.text("#text") == "0 1 "
    page.click("#forth")
    assert page.text("#text") == "0 1 2 "
    page.js("document.querySelector('#slider').focus()")
    page.press("ArrowLeft")
    page.until("document.querySelector('#text').textContent === '0 1 '")
    page.click("#follow")
    assert page.text("#text").endswith("1499 ")

    lab.open("shown")
    page.until("document.querySelector('#turn-state').textContent === 'completed'")
    assert page.text("#text") == "".join(words) + "end"
    assert rows(page)[-1][2:] == ["turn.completed", "complete, stop"]
    page.press("Escape")
    assert page.js("document.querySelector('#turn').hidden")


def test_words_that_were_taken_back_are_gone(page, client, lab):
    lab.add(Answer([chat.text("fir\U0001f30ast"), gate("read"), End.CUT]), held("second"))
    turn = ask(client, policy={"after_visible_text": "restart"})
    page.click(f"{LANE.format(turn)} .who")
    page.until("document.querySelector('#text').textContent === 'fir\U0001f30ast'")
    lab.open("read")

    page.until("document.querySelector('#text').textContent === 'second'")
    kinds = [row[2] for row in rows(page)]
    assert kinds.index("attempt.superseded") > kinds.index("retry.scheduled") > 0
    offset = kinds.index("retry.scheduled")
    page.click(f"#rows [data-offset='{offset}']")
    assert page.text("#text") == "fir\U0001f30ast"
    assert "attempt 1 fenced: truncated" in page.text("#said")
    page.until(f'document.querySelector("{LANE.format(turn)} .piece.void")')
    lab.open("shown")


def test_markup_in_whatever_comes_from_outside_is_text(page, client, lab):
    tool = chat.tool(0, id="call_1", name=f"look{EVIL}", arguments=json.dumps({"at": EVIL}))
    steps = [chat.reasoning(EVIL), chat.text(EVIL), tool, gate("shown")]
    lab.add(Answer([*steps, chat.finish("tool_calls"), chat.done()]))
    turn = ask(client, payload={**PROMPT, "model": EVIL})
    page.click(f"{LANE.format(turn)} .who")

    page.until("document.querySelector('#tools li')")
    assert page.text("#text") == EVIL
    assert page.text("#turn-title") == EVIL
    assert page.text(f"{LANE.format(turn)} strong") == EVIL
    assert EVIL in page.text("#tools li")
    assert EVIL in {row[3] for row in rows(page)}
    client.post(f"/v1/turns/{turn}/interrupt", json={"reason": EVIL})
    page.until("document.querySelector('#turn-state').textContent === 'interrupted'")
    assert EVIL in rows(page)[-1]
    assert page.js("document.querySelectorAll('main script, #house img, aside script').length") == 0


def test_page_can_be_used_by_the_keyboard_and_on_a_telephone(page, client, lab):
    lab.add(held("Hello"), held("Hello"))
    turns = [ask(client), ask(client)]
    page.resize(400, 800)
    page.until("document.querySelectorAll('#live .who').length === 2")
    assert page.js("document.documentElement.scrollWidth") <= 400

    page.js(f'document.querySelector("{LANE.format(turns[0])} .who").focus()')
    page.press("ArrowDown")
    assert page.js("document.activeElement.closest('.lane').dataset.turn") == turns[1]
    page.press("Enter")
    page.until("document.activeElement.id === 'turn-title'")
    page.until("document.querySelector('#text').textContent === 'Hello'")
    assert page.js("document.documentElement.scrollWidth") <= 400
    page.press("Escape")
    assert page.js("document.activeElement.closest('.lane').dataset.turn") == turns[1]
    unnamed = (
        "[...document.querySelectorAll('button, input')].filter((each) => each.checkVisibility()"
        " && !(each.ariaLabel || each.textContent.trim() || each.labels?.length)).length"
    )
    assert page.js(unnamed) == 0
    lab.open("shown")


def test_page_says_that_the_daemon_is_gone_and_comes_back(browser, serve, lab):
    house = serve(endpoint(lab))
    with Page(browser) as page:
        page.open(house.url)
        page.until("document.querySelector('#link')?.dataset.how === 'live'")
        assert house.end() == 0

        page.until("document.querySelector('#link').dataset.how === 'gone'")
        assert "does not answer" in page.text("#trouble")


def test_key_is_asked_for_once_where_the_page_is_open_without_one(browser, serve, lab):
    house = serve(endpoint(lab), top='keys = ["env:ONE"]', environ={"ONE": "the-key"})
    lab.add(held("Hello"))
    with house.client(headers={"authorization": "Bearer the-key"}) as client:
        turn = ask(client)
        with Page(browser) as page:
            page.open(house.url)
            for key in ("another", "the-key"):
                page.until("!document.querySelector('#door').hidden")
                page.js("document.querySelector('#key').focus()")
                page.type(key)
                page.press("Enter")
                page.until(
                    "document.querySelector('#door-why').textContent"
                    " || document.querySelector('#link').dataset.how === 'live'"
                )
            page.click(f"{LANE.format(turn)} .who")
            page.until("document.querySelector('#text').textContent === 'Hello'")
            page.open(f"{house.url}/")
            page.until("document.querySelector('#live .lane')")
        lab.open("shown")


def test_browser_sends_the_key_by_itself_where_it_was_asked_for_it(browser, tmp_path, lab):
    lab.add(held("Hello"))
    config = f'listen = "0.0.0.0:0"\nkeys = ["env:ONE"]\n{endpoint(lab)}'
    environ = {"ONE": "the-key", "TEST_PROVIDER_KEY": "provider-key"}
    house = DaemonProcess(tmp_path, config, environ)
    try:
        with house.client(headers={"authorization": "Bearer the-key"}) as client:
            turn = ask(client)
        with Page(browser) as page:
            page.open(f"http://anybody:the-key@127.0.0.1:{house.port}/")
            page.until("document.querySelector('#live .piece.running')")
            page.click(f"{LANE.format(turn)} .who")
            page.until("document.querySelector('#text').textContent === 'Hello'")
            stop = "#turn-stop"
            page.click(stop)
            page.click(stop)
            page.until("document.querySelector('#turn-state').textContent === 'interrupted'")
            assert page.js("document.querySelector('#door').hidden")
            assert page.complaints == []
    finally:
        assert house.end() == 0


def test_page_is_in_the_wheel(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())

    assert {f"tidegate/daemon/page/{name}" for name, _ in FILES.values()} <= packed
