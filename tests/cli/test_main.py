"""What holds for every command: help, exit codes, a reader that leaves."""

import re
import subprocess
import sys


def test_help_names_every_command(tidegate):
    status, output, _ = tidegate()

    assert status == 0
    for name in ("run", "demo", "lab", "local", "doctor"):
        assert re.search(rf"{name} +[A-Z]", output)


def test_version_is_a_version(tidegate):
    status, output, _ = tidegate("--version")

    assert status == 0
    assert output.strip()


def test_unknown_command_is_wrong_use(tidegate):
    status, output, errors = tidegate("no-such-command")

    assert status == 2
    assert output == ""
    assert "no-such-command" in errors


def test_unknown_option_is_wrong_use(tidegate):
    status, _, errors = tidegate("lab", "--no-such-option")

    assert status == 2
    assert "--no-such-option" in errors


def test_help_waits_for_no_sdk():
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from tidegate.cli.main import app\n"
        "app(['--help'])\n"
        "sdks = {'openai', 'anthropic', 'boto3', 'aiohttp', 'xllamacpp'}\n"
        "sys.exit(str(sdks & set(sys.modules) or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, text=True, timeout=50
    )

    assert done.stderr.strip() == ""
