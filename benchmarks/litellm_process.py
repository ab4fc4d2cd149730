"""The LiteLLM proxy in a process of its own, from an environment of its own, to compare with."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen


FOLDER = Path(sys.prefix) / "litellm"
CONFIG = """
model_list:
  - model_name: bench
    litellm_params:
      model: openai/bench
      api_base: {url}
      api_key: key
litellm_settings:
  num_retries: 0
"""
KEY = "sk-bench"
HEADERS = f"authorization: Bearer {KEY}\r\n"
"""It serves nobody without a key."""

START_S = 90.0
# What it may do without: telemetry, and a table of prices from the network.
_ENVIRON = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "NO_PROXY": "*"}


class LiteLlm:
    """The handle on that process; ``with`` starts and ends it.

    Args:
        url: of the provider.

    Raises:
        RuntimeError: it is not installed, or does not start.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[bytes]
        self._folder: tempfile.TemporaryDirectory[str]
        self.port = 0

    @property
    def pid(self) -> int:
        """Of its one worker."""
        return self._process.pid

    def __enter__(self) -> Self:
        script = FOLDER / "bin" / "litellm"
        if not script.exists():
            raise RuntimeError(f"there is no {script}: say make .venv/with-litellm")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-bench-")
        folder = Path(self._folder.name)
        (folder / "config.yaml").write_text(CONFIG.format(url=self._url))
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(str(script), "--config", "config.yaml", "--host", "127.0.0.1"),
                    *("--port", str(self.port), "--num_workers", "1", "--telemetry", "False"),
                ],
                cwd=folder,
                stdout=log,
                stderr=log,
                env={
                    **_ENVIRON,
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder),
                    "LITELLM_MASTER_KEY": KEY,
                },
            )
        try:
            self._await()
        except BaseException:
            self._stop()
            raise
        return self

    def _await(self) -> None:
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s and self._process.poll() is None:
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health/liveliness"):
                    return
            except (URLError, ConnectionError):
                time.sleep(0.2)
        said = (Path(self._folder.name) / "log").read_text()[-2000:]
        raise RuntimeError(f"LiteLLM did not start: {said}")

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._folder.cleanup()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()
