"""Reads the field's cases: what each gives, and what its settings are called here."""

from pathlib import Path
from typing import Any

import msgspec

import tidegate as tg


FILE = Path(__file__).with_name("field.jsonl")
GATEWAY = "gateway"


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """Limits in force, in the words of the reports."""

    max_attempts: int = 1
    base_backoff_ms: float = 10
    max_retry_after_ms: float | None = None
    idle_timeout_ms: float | None = None
    progress_timeout_ms: float | None = None
    first_byte_timeout_ms: float | None = None
    finish_grace_ms: float | None = None
    tools: list[str] = []
    fallback: str = ""
    heartbeat_ms: float | None = None

    def policy(self):
        return tg.Policy(
            retries=self.max_attempts - 1,
            backoff_s=(self.base_backoff_ms / 1000,),
            backoff_jitter=0.0,
            retry_after_cap_s=_seconds(self.max_retry_after_ms),
            alive_timeout_s=_seconds(self.idle_timeout_ms),
            stale_after_s=_seconds(self.progress_timeout_ms or self.idle_timeout_ms),
            first_event_timeout_s=_seconds(self.first_byte_timeout_ms),
            finish_grace_s=_seconds(self.finish_grace_ms),
        )


class Input(msgspec.Struct, forbid_unknown_fields=True):
    """What is played, and what is done."""

    script: list[dict[str, Any]] = []
    upstream: list[dict[str, Any]] = []
    fallback_script: list[dict[str, Any]] = []
    event_calls: list[dict[str, Any]] = []
    client: list[str] = []
    downstream: list[str] = []
    procedure: list[str] = []
    settings: Settings = msgspec.field(default_factory=Settings)
    notes: str = ""


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One report."""

    id: str
    source: str
    area: str
    provider_wire: str
    summary: str
    input: dict[str, Any]
    right_outcome: dict[str, Any]
    why: str

    @property
    def given(self):
        return msgspec.convert(self.input, Input)


def cases():
    return msgspec.json.Decoder(Case).decode_lines(FILE.read_bytes())


def _seconds(milliseconds):
    return None if milliseconds is None else milliseconds / 1000
