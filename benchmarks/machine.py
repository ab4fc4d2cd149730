"""What this machine is, for whoever reads a result later."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def facts() -> dict[str, str]:
    """Return what a result depends on."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory_bytes / (1 << 30):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
