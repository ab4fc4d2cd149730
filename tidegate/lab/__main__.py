"""``python -m tidegate.lab [FILE] [--port N] [--speed X]``."""

from __future__ import annotations

import argparse
import sys

from tidegate.lab.serve import serve


def main() -> None:
    """Read the arguments and serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m tidegate.lab", description=serve.__doc__)
    parser.add_argument("file", nargs="?", help="a script or a capture; without it a few words")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--speed", type=float, help="of a capture: how many times faster")
    arguments = parser.parse_args()
    try:
        serve(arguments.file, arguments.port, arguments.speed)
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main()
