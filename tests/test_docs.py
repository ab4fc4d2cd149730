"""The code in the documentation runs, and what it refers to exists."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.protocol.answers import Answer
from tidegate.protocol.failures import Failure, FailureKind, error_from
from tidegate.protocol.targets import target_of
from tidegate.testing import Lab, chat


ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
MODULE = re.compile(r"`((?:tidegate|sink|supervisor|provider|wire)/[\w/]+\.py)`")
TEST = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)::(test_\w+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_are_python(page):
    for block in BLOCK.findall(page.read_text()):
        compile(block, str(page), "exec", flags=0x2000)  # top-level await is allowed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_are_named_exist(page):
    for name in MODULE.findall(page.read_text()):
        places = [ROOT / name, ROOT / "tidegate" / name, ROOT / "tidegate" / "actors" / name]
        assert any(place.exists() for place in places), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page):
    for place, name in TEST.findall(page.read_text()):
        source = (ROOT / place if "/" in place else ROOT / "tests" / "e2e" / place).read_text()
        assert re.search(rf"def {name}\(", source), f"{place}::{name}"


def test_each_row_about_a_fault_names_a_test():
    rows = re.findall(r"^\| .*\|$", (ROOT / "docs/faults.md").read_text(), re.MULTILINE)
    rows = [row for row in rows if not row.endswith("| test |")]
    assert len(rows) > 50
    assert [row for row in rows if not TEST.search(row)] == []


@pytest.mark.parametrize(
    "example", ["test_a_cut_stream_is_no_answer", "test_each_wire_has_its_answer"]
)
def test_the_examples_of_tests_pass(example):
    names: dict = {}
    for block in BLOCK.findall((ROOT / "docs/testing.md").read_text()):
        exec(compile(block, "docs/testing.md", "exec"), names)

    names[example]()


def test_the_twenty_lines_of_the_readme_run(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")
    [block] = BLOCK.findall((ROOT / "README.md").read_text())
    official = "https://api.openai.com/v1"
    assert official in block
    with Lab([chat.answer("hello", " there")]) as lab:
        exec(compile(block.replace(official, lab.url), "README.md", "exec"), {})

    assert capsys.readouterr().out == "hello there\nstop, attempts: 1, None\n"


NAMES = {
    "tg": tg,
    "access_token": lambda: "a-token",
    "azure_token": lambda: "a-token",
    "google_token": lambda: "a-token",
    "account": "an-account",
}
VARIABLES = {
    "OPENAI_API_KEY": "a-key",
    "ANTHROPIC_API_KEY": "a-key",
    "AZURE_OPENAI_ENDPOINT": "https://name.openai.azure.com",
}


@pytest.mark.parametrize(
    "page", ["servers.md", "chat.md", "responses.md", "messages.md", "converse.md"]
)
def test_each_server_of_a_page_can_be_reached_as_it_says(page):
    text = (ROOT / "docs" / page).read_text()
    environ = VARIABLES | dict.fromkeys(re.findall(r"env:(\w+)", text), "a-key")
    statements = [each for block in BLOCK.findall(text) for each in ast.parse(block).body]
    sources = [ast.unparse(each) for each in statements]
    endpoints = [eval(each, NAMES) for each in sources if each.startswith("tg.Endpoint.")]
    assert len(endpoints) > 3
    for endpoint in endpoints:
        if endpoint.local_model is None:
            assert target_of(endpoint, environ).wire == endpoint.wire


def test_each_kind_of_failure_is_explained_with_its_error():
    text = (ROOT / "docs/policy.md").read_text().partition("## What each kind means")[2]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE)
    errors = {kind: error_from(Failure(kind=kind), Answer()) for kind in FailureKind}

    assert rows == [(kind.value, type(error).__name__) for kind, error in errors.items()]


@pytest.mark.parametrize("page", ["observers.md", "capture.md"])
def test_the_example_of_a_page_runs(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")
    [block] = BLOCK.findall((ROOT / "docs" / page).read_text())
    official = "https://api.openai.com/v1"
    assert official in block
    with Lab([chat.answer("hello", " there", steps=[chat.usage(3, 2)])]) as lab:
        exec(compile(block.replace(official, lab.url), page, "exec"), {})

    assert capsys.readouterr().out == ("2\n" if page == "observers.md" else "")


@pytest.mark.parametrize("name", ["stream.py", "first_words.py"])
def test_example_runs(name):
    with Lab([replace(chat.answer("hello", " there"), repeat=True)]) as lab:
        command = [sys.executable, ROOT / "examples" / name, lab.url, "m"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("hello there\n")
