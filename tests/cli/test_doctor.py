"""``tidegate doctor``, as a process."""

import json
import os


def test_report_says_what_is_here_and_no_key(tidegate, tmp_path):
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "sk-very-secret",
        "TIDEGATE_CACHE_DIR": str(tmp_path),
    }
    status, output, errors = tidegate("doctor", "--json", env=environment)
    report = json.loads(output)

    assert status == 0
    assert report["packages"]["openai"]
    assert "OPENAI_API_KEY" in report["keys"]
    assert "TIDEGATE_CACHE_DIR" in report["variables"]
    assert report["weights"] is None
    assert report["workers"]["method"] in {"zygote", "exec"}
    assert report["workers"]["further_s"] > 0
    assert report["self_test"]["passed"]
    assert "sk-very-secret" not in output + errors


def test_setting_that_no_turn_can_start_with_is_grave(tidegate):
    environment = {**os.environ, "TIDEGATE_STREAM_RETRIES": "many"}
    status, output, errors = tidegate("doctor", env=environment)

    assert status == 1
    assert "TIDEGATE_STREAM_RETRIES='many'" in output
    assert "Traceback" not in errors


def test_variable_that_the_configuration_names_is_no_slip(tidegate, tmp_path):
    (tmp_path / "tidegate.toml").write_text('keys = ["env:TIDEGATE_KEYZ"]')
    environment = {**os.environ, "TIDEGATE_KEYZ": "any-key", "TIDEGATE_LISTN": "127.0.0.1:1"}
    output = tidegate("doctor", cwd=tmp_path, env=environment)[1]
    said = " ".join(output.split())

    assert "! TIDEGATE_KEYZ" not in said
    assert "! TIDEGATE_LISTN is set and nobody reads it: did you mean TIDEGATE_LISTEN?" in said


def test_configuration_that_cannot_be_used_is_told_of(tidegate, tmp_path):
    (tmp_path / "tidegate.toml").write_text("drain = 3")
    status, output, _ = tidegate("doctor", cwd=tmp_path)

    assert status == 0
    assert "! the daemon cannot start: tidegate.toml:1: the top of the file" in output
    assert "tidegate config check" in output


def test_worker_that_cannot_be_started_is_grave(tidegate):
    environment = {**os.environ, "TIDEGATE_START_METHOD": "magic"}
    status, output, errors = tidegate("doctor", env=environment)

    assert status == 1
    assert "no worker could be started" in output
    assert "magic" in output
    assert "Traceback" not in errors
