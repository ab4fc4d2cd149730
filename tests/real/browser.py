"""Chromium without a screen, by its DevTools protocol: what a page does, shows and asks for."""

import base64
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tidegate.testing.eventually import eventually


LISTENING = re.compile(r"DevTools listening on ws://([\d.:]+)/")
GUARD_S = 30
KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowLeft": (37, ""),
    "ArrowDown": (40, ""),
}


@contextmanager
def chromium(folder):
    """Run the browser until the block ends; gives the address of its protocol."""
    binary = shutil.which("chromium")
    assert binary, "chromium is missing: `make chromium` installs it"
    # Chromium's own sandbox wants a user who is not root.
    rights = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [binary, "--headless=new", *rights, "--remote-debugging-port=0", "--no-first-run"]
    command += ["--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    command += ["--disable-component-update", f"--user-data-dir={folder}", "about:blank"]
    log = folder / "chromium.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder)},  # it is killed, and would leave files
        )
    try:
        yield eventually(lambda: _address(process, log), within_s=GUARD_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(GUARD_S)


def _address(process, log):
    said = log.read_text(errors="replace")
    assert process.poll() is None, f"chromium has ended: {said}"
    found = LISTENING.search(said)
    return found and found[1]


class Page:
    """One tab.

    Attributes:
        urls: of all that was asked for.
        complaints: what stands in the console as an error, and what was thrown.
    """

    def __init__(self, address, width=1280, height=860, *, dark=True):
        target = httpx.put(f"http://{address}/json/new?about:blank", timeout=GUARD_S).json()
        self._close = lambda: httpx.get(
            f"http://{address}/json/close/{target['id']}", timeout=GUARD_S
        )
        self._stack = ExitStack()
        opened = connect(target["webSocketDebuggerUrl"], max_size=None, proxy=None)
        self._socket = self._stack.enter_context(opened)
        self._numbers = itertools.count(1)
        self._answers = {}
        self._more = threading.Condition()
        self.urls, self.complaints = [], []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.tell(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._close()
        self._stack.close()
        self._reader.join(GUARD_S)

    def tell(self, method, **params):
        """Say one thing to the browser, and return its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        with self._more:
            assert self._more.wait_for(lambda: number in self._answers, GUARD_S), method
            answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def resize(self, width, height):
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def open(self, url):
        """Go to an address, and wait until what is there has been loaded."""
        self.tell("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def js(self, expression):
        """Return the value of an expression in the page."""
        got = self.tell("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def until(self, expression):
        """Wait until an expression is true."""
        eventually(lambda: self.js(f"Boolean({expression})"), within_s=GUARD_S)

    def text(self, selector):
        """Return the text of an element, None if there is none."""
        return self.js(f"document.querySelector({json.dumps(selector)})?.textContent")

    def click(self, selector):
        """Click into the middle of an element, as a mouse does."""
        where = f"document.querySelector({json.dumps(selector)})"
        self.until(f"{where} && {where}.getClientRects().length > 0")
        self.js(f"{where}.scrollIntoView({{block: 'nearest'}})")
        self.js(f"var box = {where}.getBoundingClientRect()")
        x, y = self.js("[box.x + box.width / 2, box.y + box.height / 2]")
        for kind in ("mousePressed", "mouseReleased"):
            at = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.tell("Input.dispatchMouseEvent", type=kind, **at)

    def press(self, key):
        """Press a key, wherever the focus is."""
        code, text = KEYS[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.tell("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text):
        self.tell("Input.insertText", text=text)

    def screenshot(self, path):
        data = self.tell("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _read(self):
        try:
            for message in self._socket:
                self._hear(json.loads(message))
        except ConnectionClosed:
            return

    def _hear(self, message):
        params = message.get("params", {})
        match message.get("method"):
            case None:
                with self._more:
                    self._answers[message["id"]] = message
                    self._more.notify_all()
            case "Network.requestWillBeSent":
                self.urls.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(
                    f"{params['entry']['text']} {params['entry'].get('url', '')}"
                )
