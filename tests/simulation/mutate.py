"""Changes each comparison in the machines, one at a time, and sees that a test notices.

    python -m tests.simulation.mutate [PART_OF_A_NAME ...]

Each change is made in a copy of the package; the unit tests of its machine run against it, and if
they see nothing, what explores it does. A change that nobody sees is either one that changes
nothing, and then ``equivalent.toml`` says why, or a test is missing. Takes about ten minutes on two
cores. Exits with 1 if there is a survivor, or a listed change that cannot be made any more.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import ast
import copy
import os
import queue
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("equivalent.toml")
PARALLEL = 2
UNIT_S, SIMULATION_S = 120, 900
"""How long tests may take, in seconds of a processor: a change may have made a loop endless."""
ASLEEP = 20
"""How many times as long they may take by the clock: it may have made them wait for ever, too."""
ACTORS, DAEMON = "tidegate/actors", "tidegate/daemon"
MODULES = [
    f"{ACTORS}/sink/machine.py",
    f"{ACTORS}/sink/silence.py",
    f"{ACTORS}/sink/state.py",
    f"{ACTORS}/sink/outbox.py",
    f"{ACTORS}/sink/writer.py",
    f"{ACTORS}/supervisor/machine.py",
    f"{ACTORS}/supervisor/ladder.py",
    f"{ACTORS}/supervisor/starting.py",
    f"{ACTORS}/supervisor/state.py",
    f"{ACTORS}/supervisor/retry.py",
    f"{ACTORS}/supervisor/breaker.py",
    f"{ACTORS}/supervisor/pool.py",
    f"{ACTORS}/supervisor/supervision.py",
    f"{ACTORS}/provider/machine.py",
    f"{DAEMON}/turns/machine.py",
    f"{DAEMON}/turns/endings.py",
    f"{DAEMON}/turns/state.py",
    f"{DAEMON}/stream/machine.py",
    f"{DAEMON}/stream/state.py",
]
QUICKLY = ["-x", "-q", "--assert=plain", "--timeout=0", "-p", "no:cacheprovider"]
PARTS = ["unit", "simulation", "fuzz", "daemon/machines"]

_NEGATED = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_AT_THE_EDGE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        module: its path from the root.
        function: where in it.
        change: the expression before and after.
        line: its line in the module as it is.
        source: the module with the change.
    """

    module: str
    function: str
    change: str
    line: int
    source: str

    @property
    def name(self) -> tuple[str, str, str]:
        """What tells it from others, whatever line it is in."""
        return (self.module, self.function, self.change)

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.change}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield every change of one module."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    for function, node in _sites(tree, ""):
        before = ast.unparse(node)
        original = copy.copy(node)
        for changed in _changes(node):
            node.__dict__.update(changed.__dict__)
            node.__class__ = changed.__class__
            change = f"{before} -> {ast.unparse(node)}"
            yield Mutant(module, function, change, node.lineno, ast.unparse(tree))
            node.__class__ = original.__class__
            node.__dict__.clear()
            node.__dict__.update(original.__dict__)


def _sites(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr]]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inside = f"{function}.{child.name}".strip(".")
        negation = isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.Not)
        if negation or isinstance(child, ast.Compare | ast.BoolOp):
            yield inside, child
        yield from _sites(child, inside)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield ast.BoolOp(other, node.values, lineno=node.lineno)
    elif isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for table in (_NEGATED, _AT_THE_EDGE):
                if type(operator) in table:
                    operators = [*node.ops]
                    operators[place] = table[type(operator)]()
                    yield ast.Compare(node.left, operators, node.comparators, lineno=node.lineno)


def _tests_of(module: str, *, explore: bool) -> list[str]:
    """Return what notices a change in a module: the unit tests, or all that plays interleavings."""
    part = Path(module).parent.name
    if module.startswith(DAEMON):
        kind = "explored" if explore else "not explored"
        return ["tests/daemon/machines", "-k", f"{part} and {kind}", "-m", "not slow"]
    if explore:
        return ["tests/simulation", "-m", "not slow"]
    return [f"tests/unit/actors/{part}"]


class Bench:
    """A copy of the package and its tests, in which one change at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = 0
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "tidegate", folder / "tidegate", ignore=ignored)
        for part in PARTS:
            shutil.copytree(ROOT / "tests" / part, folder / "tests" / part, ignore=ignored)
        shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
        shutil.copy(ROOT / "pyproject.toml", folder)

    def notices(self, mutant: Mutant) -> bool:
        """Say whether a test fails by it."""
        path = self._folder / mutant.module
        original = path.read_text(encoding="utf-8")
        self._write(path, mutant.source)
        try:
            explore = _tests_of(mutant.module, explore=True)
            return not (self.passes(mutant.module) and self._run(explore, SIMULATION_S))
        finally:
            self._write(path, original)

    def passes(self, module: str) -> bool:
        """Say whether the unit tests of a module's machine pass."""
        return self._run(_tests_of(module, explore=False), UNIT_S)

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        # Compiled files are told apart by whole seconds and length.
        self._stamp += 1
        os.utime(path, (self._stamp, self._stamp))

    def _run(self, tests: list[str], patience_s: int) -> bool:
        command = [sys.executable, "-m", "pytest", *QUICKLY, *tests]
        with subprocess.Popen(
            command, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as run:
            # A test that waits for its turn of the processor has noticed nothing.
            resource.prlimit(run.pid, resource.RLIMIT_CPU, (patience_s, patience_s))
            try:
                said, _ = run.communicate(timeout=ASLEEP * patience_s)
            except subprocess.TimeoutExpired:
                run.kill()
                return False
        if run.returncode in (3, 4, 5):
            raise SystemExit(f"{command} could not be run:\n{said.decode()}")
        return run.returncode == 0


def survivors_of(mutants: list[Mutant]) -> Iterator[Mutant]:
    """Yield each change that no test notices, and say how far it is."""
    benches: queue.SimpleQueue[Bench] = queue.SimpleQueue()

    def notices(mutant: Mutant) -> bool:
        bench = benches.get()
        try:
            return bench.notices(mutant)
        finally:
            benches.put(bench)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(PARALLEL) as pool:
        for number in range(PARALLEL):
            benches.put(Bench(Path(folder) / str(number)))
        first = benches.get()
        for module in {mutant.module for mutant in mutants}:
            if not first.passes(module):
                raise SystemExit(f"the tests of {module} fail without any change")
        benches.put(first)
        for number, (mutant, noticed) in enumerate(
            zip(mutants, pool.map(notices, mutants), strict=True), 1
        ):
            if not noticed:
                yield mutant
            if number % 25 == 0:
                print(f"{number} of {len(mutants)}", file=sys.stderr)


def main(names: list[str]) -> int:
    """Try the changes in the modules whose path has one of ``names`` in it, or in all."""
    modules = [module for module in MODULES if any(n in module for n in names) or not names]
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    rows = tomllib.loads(LISTED.read_text(encoding="utf-8"))["equivalent"]
    listed = {(row["module"], row["function"], row["change"]) for row in rows}
    unknown = {name for name in listed if name[0] in modules} - {mutant.name for mutant in mutants}
    tried = [mutant for mutant in mutants if mutant.name not in listed]
    survivors = 0
    for mutant in survivors_of(tried):
        survivors += 1
        print(f"survived: {mutant}", flush=True)  # now: whoever stops it keeps what it has found
    for name in sorted(unknown):
        print(f"listed and not there: {name}")
    print(
        f"{len(mutants)} changes: {len(tried) - survivors} noticed, "
        f"{len(mutants) - len(tried)} listed as changing nothing, {survivors} survived"
    )
    return 1 if survivors or unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
