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


def test_worker_that_cannot_be_started_is_grave(tidegate):
    environment = {**os.environ, "TIDEGATE_START_METHOD": "magic"}
    status, output, errors = tidegate("doctor", env=environment)

    assert status == 1
    assert "no worker could be started" in output
    assert "magic" in output
    assert "Traceback" not in errors
