"""A script without a guard runs once, whichever way it is started, and leaves nothing."""

import sys
import zipfile
from pathlib import Path

import pytest

import tidegate
from tidegate.testing import Answer, Lab, chat
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.usefixtures("nothing_left")

HELLO_FOR_EVER = Answer(chat.answer("hello", " world").steps, repeat=True)

# What a beginner writes: no ``if __name__ == "__main__"``, no ``stop()``.
SCRIPT = """
import os

import tidegate as tg

print("body")
endpoint = tg.Endpoint.chat(os.environ["LAB_URL"], "key")
runtime = tg.Runtime()
turn = runtime.start(tg.Request(endpoint, {"model": "m", "messages": []}))
for event in turn:
    if isinstance(event, tg.TextDelta):
        print(repr(event.text))
print(turn.result().finish)
"""
PRINTED = "body\n'hello'\n' world'\nstop\n"


def as_file(folder):
    (folder / "unguarded.py").write_text(SCRIPT)
    return [str(folder / "unguarded.py")], None


def as_module(folder):
    (folder / "unguarded_module.py").write_text(SCRIPT)
    return ["-m", "unguarded_module"], None


def as_package(folder):
    package = folder / "unguarded_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(SCRIPT)
    return ["-m", "unguarded_package"], None


def as_command(_folder):
    return ["-c", SCRIPT], None


def as_standard_input(_folder):
    return ["-"], SCRIPT


def as_interactive_input(_folder):
    return ["-i", "-q"], f"exec({SCRIPT!r})\n"


def as_zipapp(folder):
    with zipfile.ZipFile(folder / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", SCRIPT)
    return [str(folder / "app.pyz")], None


def isolated(folder):
    """Without the working folder, the user's packages and ``PYTHON*`` variables."""
    (folder / "unguarded.py").write_text(SCRIPT)
    return ["-I", str(folder / "unguarded.py")], None


MODES = [
    as_file,
    as_module,
    as_package,
    as_command,
    as_standard_input,
    as_interactive_input,
    as_zipapp,
    isolated,
]


@pytest.mark.parametrize("mode", MODES)
def test_unguarded_script_runs_once(run_host, marked, monkeypatch, tmp_path, mode):
    with Lab([HELLO_FOR_EVER]) as lab:
        monkeypatch.setenv("LAB_URL", lab.url)
        command, given = mode(tmp_path)

        code, output, errors = run_host("", command=command, given=given)

        assert (code, output) == (0, PRINTED), errors
        assert len(lab.requests) == 1
        eventually(lambda: not marked())


def test_unguarded_script_without_a_zygote(run_host, monkeypatch, tmp_path):
    monkeypatch.setenv("TIDEGATE_START_METHOD", "exec")
    with Lab([HELLO_FOR_EVER]) as lab:
        monkeypatch.setenv("LAB_URL", lab.url)
        command, _ = as_file(tmp_path)

        code, output, errors = run_host("", command=command)

        assert (code, output) == (0, PRINTED), errors


def test_packages_that_only_an_edited_path_makes_importable(run_host, monkeypatch, tmp_path):
    """Without the site module there are no installed packages, until the script adds a folder."""
    folders = [folder for folder in sys.path if Path(folder).name == "site-packages"]
    folders.append(str(Path(tidegate.__file__).parents[1]))
    (tmp_path / "edited.py").write_text(f"import sys\nsys.path += {folders!r}\n{SCRIPT}")
    with Lab([HELLO_FOR_EVER]) as lab:
        monkeypatch.setenv("LAB_URL", lab.url)

        code, output, errors = run_host("", command=["-S", str(tmp_path / "edited.py")])

        assert (code, output) == (0, PRINTED), errors


def test_working_folder_that_is_gone(run_host, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    source = f"import os\nos.chdir({str(gone)!r})\nos.rmdir({str(gone)!r})\n{SCRIPT}"
    with Lab([HELLO_FOR_EVER]) as lab:
        monkeypatch.setenv("LAB_URL", lab.url)

        code, output, errors = run_host(source)

        assert (code, output) == (0, PRINTED), errors


def test_closed_standard_streams(run_host, monkeypatch):
    """As under a supervisor that gives a program no terminal at all."""
    source = SCRIPT.replace("print(", "said.append(").replace("import os\n", "", 1)
    closing = "import os, sys\nsaid = []\nfor number in (0, 1, 2):\n    os.close(number)\n"
    checking = "\nos._exit(40 + len(said))\n"
    with Lab([HELLO_FOR_EVER]) as lab:
        monkeypatch.setenv("LAB_URL", lab.url)

        code, _, _ = run_host(closing + source + checking)

        assert code == 44
