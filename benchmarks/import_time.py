"""What ``import tidegate`` takes in a fresh process, and that no SDK comes with it."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


SCRIPT = """
import sys, time
began_s = time.perf_counter()
import tidegate
took_s = time.perf_counter() - began_s
sdks = {"openai", "anthropic", "boto3", "botocore", "httpx", "httpx2", "aiohttp", "pydantic"}
print(took_s, *sorted(sdks & set(sys.modules)))
"""


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(11, 3)
    _import()  # writes the bytecode
    took_s = [_import() for _ in range(rounds)]
    with Provider() as provider, Side("tidegate_side") as ours:
        ours.ask("read", url=provider.url("flow", 64, 64))
        sdks = ours.ask("sdks")
    assert not sdks, f"a host that has run a turn has imported {sdks}"
    behind = f"{rounds} processes, the slowest {shown(max(took_s) * 1e3)} ms; no SDK imported"
    return [Figure("import tidegate", median(took_s) * 1e3, "ms", 200.0, behind=behind)]


def _import() -> float:
    command = [sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    took_s, *sdks = run.stdout.split()
    assert not sdks, f"imported with tidegate: {sdks}"
    return float(took_s)
