"""A program without a main guard runs its body once, however it is launched, and ends."""

import zipfile

import pytest

from tidegate.testing.eventually import eventually


SCRIPT = """
import threading
from tidegate.actors.supervisor.io import WorkerIo
from tidegate.testing.workers import PUPPETS

print("body", flush=True)
pids = []
came = threading.Event()

def deliver(messages):
    pids.append(messages[0].pid)
    came.set()

io = WorkerIo(deliver=deliver, crashed=print, providers=PUPPETS)
io.start()
io.spawn(1)
came.wait(30)
print(pids[0], flush=True)
"""
STOP = "io.stop()\nio.join()\n"


@pytest.fixture(params=["file", "-m", "-c", "standard input", "zipapp"])
def launch(request, run_host, tmp_path, monkeypatch):
    """Run a script in one of five ways, and return what it wrote and its exit code."""

    def run(source, start_method):
        monkeypatch.setenv("TIDEGATE_START_METHOD", start_method)
        archive = tmp_path / "app.pyz"
        with zipfile.ZipFile(archive, "w") as app:
            app.writestr("__main__.py", source)
        command = {
            "file": ("script.py",),
            "-m": ("-m", "script"),
            "-c": ("-c", source),
            "standard input": ("-",),
            "zipapp": (archive,),
        }[request.param]
        with (tmp_path / "input.py").open("w+") as given:
            given.write(source)
            given.seek(0)
            host = run_host(source, *command, stdin=given)
        out, error = host.communicate(timeout=30)
        return out.split(), error, host.returncode

    return run


@pytest.mark.parametrize(
    ("start_method", "end"),
    [("zygote", ""), ("zygote", STOP), ("exec", "")],
    ids=["forgets to stop", "stops", "execs and forgets to stop"],
)
def test_body_without_a_guard_runs_once(launch, gone, start_method, end):
    words, error, returncode = launch(SCRIPT + end, start_method)

    assert error == ""
    assert words[0] == "body"
    assert len(words) == 2
    assert returncode == 0
    eventually(lambda: gone(int(words[1])))


def test_module_that_only_the_host_can_find_is_found(run_host, tmp_path, start_method, monkeypatch):
    """Its folder is put on the search path while the program runs."""
    monkeypatch.setenv("TIDEGATE_START_METHOD", start_method)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "ours.py").write_text("from tidegate.testing.workers import Puppets")
    edit = "import sys; sys.path.append('hidden')\n"
    script = SCRIPT.replace("PUPPETS)", "'ours:Puppets', preload=('ours',))")

    host = run_host(edit + script + STOP)

    out, error = host.communicate(timeout=30)
    assert error == ""
    assert len(out.split()) == 2


def test_module_of_the_same_name_in_the_working_folder_is_not_taken(
    run_host, tmp_path, start_method, monkeypatch
):
    monkeypatch.setenv("TIDEGATE_START_METHOD", start_method)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("socket", "asyncio", "signal", "tidegate"):
        (elsewhere / f"{name}.py").write_text("raise SystemExit('taken')")
    move = "import os; import tidegate.actors.supervisor.io; os.chdir('elsewhere')\n"

    host = run_host(move + SCRIPT + STOP)

    out, error = host.communicate(timeout=30)
    assert error == ""
    assert len(out.split()) == 2
