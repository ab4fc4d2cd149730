"""Fuzzes one decoder for a while, led by the branches that it takes: ``python -m tests.fuzz chat``.

The corpus grows in ``build/fuzz/NAME/corpus``. What breaks a rule ends the run; the input is kept
beside it, and ``python -m tests.fuzz NAME --input FILE`` plays it again without the fuzzer.
"""

import argparse
import hashlib
import sys
from pathlib import Path
from random import Random

import atheris


with atheris.instrument_imports(include=["tidegate"]):
    from tests.fuzz.decoders import HEAD_BYTES, NAMES, Fuzzed, fuzzed


FOLDER = Path("build/fuzz")
INPUT_BYTES_MAX = 6000
FLAGS = (0, 1, 2, 3, 5, 9)
"""Of the seeds: labelled or not, asked for as a stream or not, two choices, a small limit."""


def main() -> None:
    """Fuzz one decoder, or play one input."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=600, help="how long (default: 600)")
    parser.add_argument("--input", type=Path, help="play this file and nothing else")
    asked = parser.parse_args()
    decoder = fuzzed(asked.name)
    if asked.input:
        decoder.run(asked.input.read_bytes())
        return
    folder = FOLDER / asked.name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for body in decoder.bodies:
        for flags in FLAGS:
            data = bytes([flags, 1]) + body
            (folder / "corpus" / hashlib.sha1(data).hexdigest()).write_bytes(data)
    options = [
        f"-max_total_time={asked.seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-artifact_prefix={folder}/",
        "-rss_limit_mb=1024",
        "-timeout=20",
        "-print_final_stats=1",
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(folder / "corpus")],
        decoder.run,
        custom_mutator=_mutator(decoder),
    )
    atheris.Fuzz()


def _mutator(decoder: Fuzzed):
    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        rng = Random(seed)
        if decoder.change is None or len(data) < HEAD_BYTES or rng.randrange(4) == 0:
            return atheris.Mutate(data, size_max)
        head = bytearray(data[:HEAD_BYTES])
        if rng.randrange(8) == 0:
            head[0] = rng.randrange(16)
        head[1] = rng.randrange(256)
        return bytes(head) + decoder.change(data[HEAD_BYTES:], rng)[: size_max - HEAD_BYTES]

    return mutate


if __name__ == "__main__":
    main()
