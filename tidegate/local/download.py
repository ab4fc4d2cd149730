"""Downloads one package without its dependencies, with whichever installer runs here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tidegate.errors import ConfigurationError
from tidegate.settings import environment


SAMPLE_S = 0.1
LOG_LINES_SHOWN = 8


def download(requirement: str, scratch: Path, on_bytes: Callable[[int], None]) -> Path:
    """Put a package, as a wheel or unpacked, into a folder of ``scratch``.

    pip is asked first, then uv; without both, a pip that belongs to another Python. Each finds
    the package where its own configuration says. What the installer writes stays inside
    ``scratch``, so that nothing is left anywhere else when it is killed.

    Args:
        requirement: name and exact version, as in ``"name==1.2"``.
        scratch: an existing, empty folder with room for the package.
        on_bytes: told now and then how many bytes have come, in the caller's thread.

    Returns:
        The folder that holds the wheel (pip) or its content (uv).

    Raises:
        ConfigurationError: there is no installer, or none of them could get the package.
    """
    into = scratch / "package"
    temporary = scratch / "temporary"
    refusals = []
    for command in _commands(requirement, into):
        for folder in (into, temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        log = scratch / "log"
        if _run(command, temporary, log, on_bytes) == 0:
            return into
        refusals.append(_last_lines(log))
    if not refusals:
        raise ConfigurationError(
            f"neither pip nor uv is to be found, and one of them has to download {requirement}: "
            f"run `{sys.executable} -m ensurepip`, then `tidegate local fetch`"
        )
    raise ConfigurationError(
        f"{requirement} could not be downloaded; check the network and the configuration of pip, "
        f"then run `tidegate local fetch` again. The installer said:\n{refusals[0]}"
    )


def _commands(requirement: str, into: Path) -> list[list[str]]:
    pip_download = [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        f"--dest={into}",
        requirement,
    ]
    commands = []
    if importlib.util.find_spec("pip") is not None:
        # -P: a folder called pip in the user's current folder is not the one that is meant.
        commands.append([sys.executable, "-P", "-m", "pip", *pip_download])
    if uv := shutil.which("uv"):
        # uv cannot download, but it can install into a folder that nothing imports from.
        only_this = ["--no-deps", "--no-build", "--python", sys.executable]
        commands.append([uv, "pip", "install", *only_this, f"--target={into}", requirement])
    if not commands and (pip := shutil.which("pip3") or shutil.which("pip")):
        commands.append([pip, *pip_download])
    return commands


def _run(command: list[str], temporary: Path, log: Path, on_bytes: Callable[[int], None]) -> int:
    variables = {**environment(), **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
        )
    try:
        while True:
            try:
                return process.wait(timeout=SAMPLE_S)
            except subprocess.TimeoutExpired:
                on_bytes(_largest_bytes(temporary.parent))
    finally:
        # Only an interrupt finds it still running.
        if process.poll() is None:
            process.kill()
            process.wait()


def _largest_bytes(folder: Path) -> int:
    """Size of the largest file: pip keeps a second copy for its cache while it downloads."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, Path(parent, name).stat().st_size)
            except FileNotFoundError:
                continue  # the installer moves its files while we look
    return largest


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:])
