"""``python -m benchmarks [NAME ...] [--quick] [--save]``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures import Effort, Figure, table
from benchmarks.machine import facts


NAMES = (
    "import_time",
    "whole_path",
    "worker_read",
    "cpu_per_delta",
    "interrupt_taken",
    "interrupt_closed",
    "stale_kill",
    "stopped_worker",
    "paced_streams",
    "first_delta",
    "long_history",
    "daemon_first_byte",
    "daemon_deltas",
    "daemon_disconnect",
    "daemon_resume",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
PACKAGES = ("tidegate", "openai", "aiohttp", "msgspec", "pykka")


def main() -> int:
    """Run benchmarks, print their figures, and say whether all bounds were met."""
    arguments = _arguments()
    effort = Effort(quick=arguments.quick)
    busy = os.getloadavg()[0]
    figures: list[Figure] = []
    for name in arguments.names:
        began_s = time.monotonic()
        found = importlib.import_module(f"benchmarks.{name}").run(effort)
        print(f"{name} ({time.monotonic() - began_s:.0f} s)\n{table(found)}\n", flush=True)
        figures += found
    whole = table(figures)
    print(whole)
    if arguments.save:
        RESULTS.write_text(_results(whole, arguments, busy))
    return 0 if all(figure.met for figure in figures) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; without any, all")
    parser.add_argument("--quick", action="store_true", help="few samples: only to see it work")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    arguments.names = arguments.names or list(NAMES)
    return arguments


def _results(whole: str, arguments: argparse.Namespace, busy: float) -> str:
    machine = facts() | {
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "load before": f"{busy:.2f}",
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
    }
    lines = [f"- {name}: {value}" for name, value in machine.items()]
    how = "a quick run, which proves nothing" if arguments.quick else "a full run"
    return "\n".join(
        [
            "# Benchmark results",
            "",
            f"The last saved run, {how}. Both sides of a ratio were measured in turn within it.",
            "",
            *lines,
            "",
            whole,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
