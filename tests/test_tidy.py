"""Rules of the house that no linter knows."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

import tidegate


ROOT = Path(tidegate.__file__).parent
MODULES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))
FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 50

# Each exception with its number of lines; a row here needs a reason beside it.
LONGER_FILES: dict[str, int] = {}
LONGER_FUNCTIONS: dict[str, int] = {}


@pytest.fixture(params=MODULES)
def module(request):
    return request.param


@pytest.fixture
def source(module):
    return (ROOT / module).read_text(encoding="utf-8")


def test_file_fits_in_one_sitting(module, source):
    assert source.count("\n") <= LONGER_FILES.get(module, FILE_LINES_MAX)


def test_function_fits_on_one_screen(module, source):
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    too_long = {
        f"{module}:{node.name}": node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, functions)
        and node.end_lineno - node.lineno + 1
        > LONGER_FUNCTIONS.get(f"{module}:{node.name}", FUNCTION_LINES_MAX)
    }

    assert too_long == {}


def test_module_says_what_it_is_for(source):
    assert ast.get_docstring(ast.parse(source))


def test_examples_in_docstrings_are_true(module, source):
    if ">>> " not in source:
        return
    name = ".".join(("tidegate", *Path(module).with_suffix("").parts)).removesuffix(".__init__")

    assert doctest.testmod(importlib.import_module(name)).failed == 0
