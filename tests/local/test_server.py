"""The host's side of the model server: one process per model, shared, and never left behind.

The server is a stand-in in the place of the wheel, so these tests need neither the extra nor the
weights; ``tests/real`` runs the same roads with both.
"""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import msgspec
import pytest

from tidegate.errors import ConfigurationError, RuntimeStopped
from tidegate.local.serve_main import ServeOrder
from tidegate.local.server import BOOTSTRAP, LocalServers
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.usefixtures("stand_in")

SERVE = """
from tidegate.local.server import LocalServers
servers = LocalServers()
servers.base_url({model!r})
print(servers.pids()[0], flush=True)
"""


@pytest.fixture
def servers():
    with closing(LocalServers()) as made:
        yield made


def test_server_lists_the_model_under_its_name(servers, model, ask):
    answer = ask(servers.base_url(str(model(name="my-model"))))

    assert answer["path"] == "/v1/models"
    assert [each["id"] for each in answer["data"]] == ["my-model"]


@pytest.mark.parametrize("cores", [None, 1, 2, 8])
def test_model_leaves_a_core_free(servers, model, ask, monkeypatch, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)

    threads = {None: 1, 1: 1, 2: 1, 8: 7}[cores]
    assert ask(servers.base_url(str(model())))["threads"] == [threads, threads]


def test_all_threads_share_one_process(servers, model):
    path = str(model())
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(lambda _: servers.base_url(path), range(8)))

    assert len(urls) == 1
    assert len(servers.pids()) == 1


def test_two_spellings_of_a_path_are_one_model(servers, model, monkeypatch):
    path = model()
    monkeypatch.chdir(path.parent)

    assert servers.base_url(str(path)) == servers.base_url(path.name)


def test_each_model_has_its_own_process(servers, model, ask):
    first = ask(servers.base_url(str(model(name="first"))))
    second = ask(servers.base_url(str(model(name="second"))))

    assert first["pid"] != second["pid"]
    assert set(servers.pids()) == {first["pid"], second["pid"]}


def test_server_that_died_is_started_again(servers, model, ask):
    path = str(model())
    servers.base_url(path)
    (pid,) = servers.pids()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not servers.pids())

    assert ask(servers.base_url(path))["pid"] != pid


def test_refusing_server_is_quoted(servers, model):
    with pytest.raises(ConfigurationError, match="status 1") as caught:
        servers.base_url(str(model("refuse")))

    assert "cannot read this tensor\nfailed to start" in str(caught.value)


def test_crashing_server_is_reported_with_its_status(servers, model):
    with pytest.raises(ConfigurationError, match=f"status {-signal.SIGSEGV}"):
        servers.base_url(str(model("crash")))


def test_failed_start_is_tried_again_on_the_next_use(servers, model):
    path = model("refuse")
    with pytest.raises(ConfigurationError):
        servers.base_url(str(path))
    path.write_bytes(b"GGUF serve")

    assert servers.base_url(str(path))


def test_server_that_is_never_ready_is_given_up_and_killed(model, running):
    path = model("hang")
    with closing(LocalServers(ready_timeout_s=1.0)) as servers:
        with pytest.raises(ConfigurationError, match="not ready within 1 s"):
            servers.base_url(str(path))

        assert servers.pids() == ()


def test_interpreter_that_cannot_be_started_is_a_clear_error(servers, model, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(ConfigurationError, match="cannot be started"):
        servers.base_url(str(model()))


def test_close_ends_the_process(servers, model, running):
    servers.base_url(str(model()))
    (pid,) = servers.pids()
    servers.close()

    assert not running(pid)
    assert servers.pids() == ()


def test_close_ends_a_stopped_process(servers, model, running):
    servers.base_url(str(model()))
    (pid,) = servers.pids()
    os.kill(pid, signal.SIGSTOP)
    servers.close()

    assert not running(pid)


def test_close_frees_whoever_waits_for_a_start(servers, model):
    address = servers.address(str(model("hang")))
    servers.close()

    with pytest.raises(RuntimeStopped):
        address.result(timeout=20)


def test_nothing_starts_after_close(servers, model):
    servers.close()
    servers.close()

    with pytest.raises(RuntimeStopped):
        servers.base_url(str(model()))


def test_no_thread_is_left_after_close(servers, model):
    servers.base_url(str(model()))
    servers.close()

    assert not [each for each in threading.enumerate() if each.name.startswith("local-server")]


def test_missing_extra_says_what_to_install(servers, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'tidegate\[local\]'"):
        servers.base_url(str(model()))


def test_unknown_model_fails_without_a_process(servers):
    with pytest.raises(ConfigurationError, match="no-such-model"):
        servers.base_url("no-such-model")

    assert servers.pids() == ()


@pytest.mark.parametrize("stopped", [False, True])
def test_server_dies_with_its_owner(run_owner, model, running, stopped):
    owner = run_owner(SERVE.format(model=str(model())) + "sys.stdin.read()")
    pid = int(owner.stdout.readline())
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    owner.kill()

    eventually(lambda: not running(pid))


def test_server_dies_with_an_owner_whose_fork_holds_the_descriptors(run_owner, model, running):
    script = SERVE + "import os\nif os.fork() == 0: print('forked', flush=True)\nsys.stdin.read()"
    owner = run_owner(script.format(model=str(model())))
    pid = int(owner.stdout.readline())
    assert owner.stdout.readline() == "forked\n"
    owner.kill()

    eventually(lambda: not running(pid))


def test_server_dies_with_its_owner_while_it_loads(run_owner, model, running):
    path = model("hang")
    owner = run_owner(SERVE.format(model=str(path)))
    pid = int(eventually(lambda: path.with_suffix(".loading").exists() and _text(path)))
    owner.kill()

    eventually(lambda: not running(pid))


def test_owner_that_forgets_to_close_ends_and_so_does_the_server(run_owner, model, running):
    owner = run_owner(SERVE.format(model=str(model())))
    pid = int(owner.stdout.readline())

    assert owner.wait(20) == 0
    eventually(lambda: not running(pid))


def test_thread_that_asked_first_may_end(run_owner, model, ask):
    script = """
import threading
from tidegate.local.server import LocalServers
servers = LocalServers()
asker = threading.Thread(target=servers.base_url, args=({model!r},))
asker.start()
asker.join()
(pid,) = servers.pids()
print(servers.base_url({model!r}), servers.pids() == (pid,), flush=True)
sys.stdin.read()
"""
    owner = run_owner(script.format(model=str(model())))
    url, same = owner.stdout.readline().split()

    assert same == "True"
    assert ask(url)


def test_forked_child_cannot_touch_the_servers(run_owner, model, ask):
    script = """
import os
from tidegate.errors import ForkedRuntime
from tidegate.local.server import LocalServers
servers = LocalServers()
url = servers.base_url({model!r})
if os.fork() == 0:
    servers.close()
    try:
        servers.base_url({model!r})
    except ForkedRuntime:
        os._exit(7)
    os._exit(0)
_, status = os.wait()
print(url, os.waitstatus_to_exitcode(status), flush=True)
sys.stdin.read()
"""
    owner = run_owner(script.format(model=str(model())))
    url, status = owner.stdout.readline().split()

    assert status == "7"
    assert ask(url)


def test_unguarded_script_runs_once_and_its_output_is_its_own(run_owner, model, tmp_path):
    script = tmp_path / "script.py"
    lines = f"import sys; sys.path[:] = {sys.path!r}\nprint('body', flush=True)\n"
    script.write_text(lines + SERVE.format(model=str(model())) + "servers.close()\n")
    errors = tmp_path / "stderr"
    with errors.open("w") as stderr:
        owner = run_owner(
            f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", stderr=stderr
        )
        output, _ = owner.communicate(timeout=30)

    assert output.splitlines()[0] == "body"
    assert len(output.splitlines()) == 2
    assert errors.read_text() == ""


def test_modules_of_the_current_folder_are_not_taken_for_ours(
    servers, model, tmp_path, monkeypatch
):
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    (tmp_path / "tidegate.py").write_text("raise SystemExit('nor this one')")
    monkeypatch.chdir(tmp_path)

    assert servers.base_url(str(model()))


def _text(path):
    return path.with_suffix(".loading").read_text()


def test_server_ends_when_its_lifeline_does(model, running):
    order = ServeOrder(
        model_path=str(model()),
        alias="tiny",
        owner_pid=os.getpid(),
        mark="ready ",
        threads_count=1,
        slots_count=1,
        context_tokens=512,
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", BOOTSTRAP, msgspec.json.encode(order).decode(), *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    with process:
        while b"ready http" not in process.stdout.readline():
            assert process.poll() is None
        process.stdin.close()

        assert process.wait(20) == 0
