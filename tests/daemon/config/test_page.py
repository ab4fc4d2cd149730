"""The page about the configuration says what the keys are, neither more nor less."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from tidegate.daemon.config import check, keys
from tidegate.daemon.config.load import load
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig


PAGE = Path(__file__).parents[3] / "docs" / "daemon-config.md"
TEXT = PAGE.read_text(encoding="utf-8")


def documented(heading):
    """The rows of the table below a heading."""
    part = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [row for row in re.findall(r"^\|.*\|$", part, re.MULTILINE) if row.startswith("| `")]


def row(name, key, field):
    """What a row must be."""
    if field.required:
        default = "required"
    elif field.default in (None, msgspec.NODEFAULT):
        default = ""
    else:
        text = check.shown(name, key, field.default)
        default = "" if text == check.NOTHING else f"`{text}`"
    wanted = key.kind.wanted.replace("|", "\\|")
    meaning = key.meaning if key.live else f"{key.meaning}. *Restart*"
    return f"| `{name}` | {default} | {wanted} | {meaning} |"


@pytest.mark.parametrize(
    ("heading", "known", "struct"),
    [
        ("The daemon", keys.DAEMON_KEYS, DaemonConfig),
        ("Endpoints", keys.ENDPOINT_KEYS, EndpointConfig),
    ],
)
def test_each_key_has_its_row_and_each_row_its_key(heading, known, struct):
    fields = {field.name: field for field in msgspec.structs.fields(struct)}

    assert documented(heading) == [row(name, key, fields[name]) for name, key in known.items()]


def test_the_file_that_is_shown_can_be_used(tmp_path):
    [shown] = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "tidegate.toml").write_text(shown)

    config = load(cwd=tmp_path, environ={}).config

    assert [*config.endpoints] == [*tomllib.loads(shown)["endpoints"]]
