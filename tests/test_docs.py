"""The code in the documentation runs, and what it refers to exists."""

import ast
import dataclasses
import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tidegate as tg
from tests.test_public_api import signature_of
from tidegate.lab import steps
from tidegate.lab.form import AnswerForm, StepForm, answers_from, scripts_from
from tidegate.protocol.failures import Failure, FailureKind, error_from
from tidegate.protocol.targets import target_of
from tidegate.testing import Answer, End, Lab, chat, converse, gate, messages, responses


ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
MODULE = re.compile(r"`((?:tidegate|sink|supervisor|provider|wire)/[\w/]+\.py)`")
TEST = re.compile(r"`((?:[\w/]+/)?test_\w+\.py)::(test_\w+)`")


def section(page, title):
    """Return what stands below a title, up to the next one."""
    below = (ROOT / page).read_text().partition(f"\n## {title}\n")[2]
    assert below, f"{page}: {title}"
    return below.partition("\n## ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_are_python(page):
    for block in BLOCK.findall(page.read_text()):
        compile(block, str(page), "exec", flags=0x2000)  # top-level await is allowed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_lead_to_a_title(page):
    for target, anchor in ANCHOR.findall(page.read_text()):
        place = page.parent / target if target else page
        titles = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
        assert anchor in anchors, f"{target}#{anchor}"


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


def test_each_line_that_can_be_relied_on_has_its_tests():
    promised, shown = (
        re.findall(r"^\| ([A-Z].+?)\.? \|", section(page, "What you can rely on"), re.MULTILINE)
        for page in ("README.md", "docs/faults.md")
    )
    assert len(promised) == len(shown) > 10
    for promise, row in zip(promised, shown, strict=True):
        assert promise.startswith(row)


@pytest.mark.parametrize(
    "example", ["test_a_cut_stream_is_no_answer", "test_each_wire_has_its_answer"]
)
def test_the_examples_of_tests_pass(example):
    names: dict = {}
    for block in BLOCK.findall((ROOT / "docs/testing.md").read_text()):
        exec(compile(block, "docs/testing.md", "exec"), names)

    names[example]()


def functions_of(module):
    names = [name for name in vars(module) if not name.startswith("_")]
    found = [getattr(module, name) for name in names]
    return [
        each for each in found if inspect.isfunction(each) and each.__module__ == module.__name__
    ]


@pytest.mark.parametrize(
    ("module", "before"),
    [
        (steps, "`"),
        (chat, "`"),
        (responses, r"^responses\.| "),
        (messages, r"^messages\."),
        (converse, r"^converse\."),
    ],
    ids=lambda each: each.__name__.rpartition(".")[2] if inspect.ismodule(each) else "",
)
def test_each_helper_of_the_lab_is_there_with_its_arguments(module, before):
    text = (ROOT / "docs/testing.md").read_text()
    calls = [f"{each.__name__}{signature_of(each)}" for each in functions_of(module)]
    assert len(calls) > 8
    for call in calls:
        assert re.search(rf"(?:{before}){re.escape(call)}", text, re.MULTILINE), call


def test_each_field_of_a_labs_answer_is_there_with_its_default():
    rows = dict(
        re.findall(r"^\| `(\w+)` \| (.*?) \|", section("docs/testing.md", "Scripts"), re.MULTILINE)
    )
    fields = {each.name: each.default for each in dataclasses.fields(Answer)}

    assert [*rows] == [*fields]
    for name in fields.keys() - {"steps", "headers"}:
        assert str(fields[name]).removesuffix(".0") == rows[name]


def test_each_step_of_a_labs_file_is_there():
    text = section("docs/testing.md", "From a file")
    rows = [json.loads(row) for row in re.findall(r"^\| `(\{.*?\})` \|", text, re.MULTILINE)]
    for row in rows:
        assert len(answers_from([{"steps": [row]}])[0].steps) == 1
    assert {name for row in rows for name in row} == {*StepForm.__struct_fields__}
    assert [row["end"] for row in rows if "end" in row] == [*End]
    [fields] = re.findall(r"An answer has the fields (.*?);", text, re.DOTALL)
    assert names_in(fields) == sorted(AnswerForm.__struct_fields__, key=fields.index)
    [example] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert scripts_from(example.encode())[""][0].end == End.CUT


@pytest.fixture
def against(monkeypatch):
    """Run Python of a page against a lab in the place of OpenAI."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")

    def run(page, lab, /, **names):
        official = "https://api.openai.com/v1"
        code = "\n".join(BLOCK.findall((ROOT / page).read_text()))
        assert official in code
        exec(compile(code.replace(official, lab.url), page, "exec"), names)

    return run


def test_the_twenty_lines_of_the_readme_run(against, capsys):
    with Lab([chat.answer("hello", " there")]) as lab:
        against("README.md", lab)

    assert capsys.readouterr().out == "hello there\nstop, partial: False, attempts: 1\n"


def test_the_twenty_lines_of_the_readme_tell_of_a_cut_answer(against):
    with Lab([Answer([chat.text("hello"), gate("shown"), End.CUT])]) as lab:
        shown = []

        def show(text, end="\n", **_options):
            shown.append(text + end)
            lab.open("shown")

        against("README.md", lab, print=show)

    assert "".join(shown) == "hello\nincomplete, partial: True, attempts: 1\n"


def test_the_examples_of_the_library_run(against, capsys):
    answers = {
        "Why do tides turn?": chat.answer("The", " moon."),
        "Tell a long story.": Answer([chat.text("Once"), End.HOLD]),
        "What is ebb?": chat.answer("Out."),
        "What is flood?": chat.answer("In."),
    }
    with Lab(route=lambda request: answers[request.json()["messages"][0]["content"]]) as lab:
        against("docs/library.md", lab)

    assert capsys.readouterr().out.splitlines() == [
        "The moon.",
        "Once",
        "enough True",
        "Out.",
        "['Out.', 'In.']",
    ]


def test_an_answer_is_partial_where_the_library_says_so():
    begun = [chat.text("So far"), chat.tool(0, id="call_1", name="clock", arguments='{"zo')]
    with Lab() as lab, tg.Runtime(workers=1) as runtime:
        request = tg.Request(tg.Endpoint.chat(lab.url), {}, policy=tg.Policy(retries=0))
        lab.add(Answer([*begun, chat.finish("length")]), Answer([*begun, End.CUT]))
        limited = runtime.run(request)
        with pytest.raises(tg.StreamTruncated) as unseen:
            runtime.run(request)
        lab.add(Answer([*begun, gate("seen"), End.CUT]))
        seen = runtime.run(request, on_event=lambda _event: lab.open("seen"))

    assert (limited.partial, limited.failure, limited.finish) == (False, None, "length")
    assert (unseen.value.answer.partial, unseen.value.answer.text) == (False, "So far")
    assert (seen.partial, seen.failure.kind, seen.finish) == (True, "truncated", "incomplete")
    assert {each.lost_tools for each in (limited, unseen.value.answer, seen)} == {("clock",)}
    assert {each.tool_calls for each in (limited, unseen.value.answer, seen)} == {()}


def test_the_library_has_each_name_of_the_public_surface():
    words = set(re.findall(r"`(?:tg\.)?(\w+)", (ROOT / "docs/library.md").read_text()))

    assert set(tg.__all__) - words == set()


def names_in(text):
    return re.findall(r"`(\w+)`", text)


def test_the_library_has_each_field_of_an_answer():
    rows = re.findall(r"^\| (`.*?) \|", section("docs/library.md", "Answer"), re.MULTILINE)
    fields = [name for row in rows for name in names_in(row) if name[0].islower()]

    assert sorted(fields) == sorted(tg.Answer.__struct_fields__)


@pytest.mark.parametrize(
    "record",
    [
        tg.ToolCall,
        tg.Usage,
        tg.Choice,
        tg.AttemptReport,
        tg.Failure,
        tg.Settings,
        tg.Statistics,
    ],
    ids=lambda record: record.__name__,
)
def test_the_library_has_each_field_of_a_record(record):
    text = section("docs/library.md", "Answer")
    [row] = re.findall(rf"^\| `{record.__name__}` \| (.*?)(?: \(.*\))? \|$", text, re.MULTILINE)

    assert names_in(row) == list(record.__struct_fields__)


def test_the_library_has_each_event_with_its_type_and_fields():
    text = section("docs/library.md", "Events")
    rows = re.findall(r"^\| `(\w+)` \| `([a-z_.]+)` \| (.*?) \|", text, re.MULTILINE)
    common = len(tg.Event.__struct_fields__)
    assert tg.Event.__struct_fields__ == ("turn_id", "attempt", "offset", "at_s")

    assert [(name, tag, names_in(fields)) for name, tag, fields in rows] == [
        (event.__name__, event.__struct_config__.tag, [*event.__struct_fields__[common:]])
        for event in tg.AnyEvent.__args__
    ]


def test_the_library_has_each_error_with_what_else_it_is():
    text = section("docs/library.md", "Errors")
    rows = re.findall(r"^\| `(\w+)` \| (?:`(\w+)` )?\| ", text, re.MULTILINE)
    exported = [getattr(tg, name) for name in tg.__all__]
    errors = {
        each.__name__: next((base.__name__ for base in each.__bases__[1:]), "")
        for each in exported
        if isinstance(each, type) and issubclass(each, tg.TidegateError)
    }

    assert dict(rows) | {"TidegateError": "", "TurnError": ""} == errors


@pytest.mark.parametrize("kind", [tg.Runtime, tg.Turn], ids=lambda kind: kind.__name__)
def test_the_library_has_each_method(kind):
    said = re.findall(r"`([a-z_]\w*)", section("docs/library.md", kind.__name__))

    assert {name for name in vars(kind) if not name.startswith("_")} - {*said} == set()


@pytest.mark.parametrize("kind", [tg.Runtime, tg.Request], ids=lambda kind: kind.__name__)
def test_the_library_has_each_argument(kind):
    said = re.findall(r"^\| `([a-z]\w*)", section("docs/library.md", kind.__name__), re.MULTILINE)

    assert {*inspect.signature(kind).parameters} - {*said} == set()


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
    text = section("docs/policy.md", "What each kind means")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE)
    errors = {kind: error_from(Failure(kind=kind), tg.Answer()) for kind in FailureKind}

    assert rows == [(kind.value, type(error).__name__) for kind, error in errors.items()]


def test_make_run_installs_what_the_readme_installs_by_hand():
    extras = re.findall(r"pip install '(?:\.|tidegate)\[(.*?)\]'", (ROOT / "README.md").read_text())
    command = ["make", "--dry-run", "--always-make", "run"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert extras == ["local,daemon"] * 2
    assert f"install --editable '.[{extras[0]}]'\n" in made


@pytest.mark.parametrize("page", ["observers.md", "capture.md"])
def test_the_example_of_a_page_runs(page, against, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    with Lab([chat.answer("hello", " there", steps=[chat.usage(3, 2)])]) as lab:
        against(f"docs/{page}", lab)

    assert capsys.readouterr().out == ("2\n" if page == "observers.md" else "")


@pytest.mark.parametrize("name", ["stream.py", "first_words.py"])
def test_example_runs(name):
    with Lab([replace(chat.answer("hello", " there"), repeat=True)]) as lab:
        command = [sys.executable, ROOT / "examples" / name, lab.url, "m"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("hello there\n")
