"""The lab as a process of its own."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest


@contextmanager
def serving(*arguments, lines=1):
    """Run the command, and yield the lines it printed."""
    command = [sys.executable, "-m", "tidegate.lab", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [process.stdout.readline().strip() for _ in range(lines)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


@pytest.fixture
def client():
    with httpx.Client(trust_env=False, timeout=10) as client:
        yield client


def test_built_in_script_streams_a_few_words(client):
    with serving() as (url,):
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        streamed = client.post(f"{url}/chat/completions", json=asked).text
        plain = client.post(f"{url}/chat/completions", json={}).json()

        assert client.get(f"{url}/models").json()["data"][0]["id"] == "lab"
        assert client.post(f"{url}/chat/completions", content=b"{").status_code == 400
        assert client.get(f"{url}/other").status_code == 500

    records = [line.removeprefix("data: ") for line in streamed.split("\n\n") if line]
    chunks = [json.loads(record) for record in records[:-1]]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert records[-1] == "[DONE]"
    assert chunks[-1]["usage"]["completion_tokens"] == 9
    assert (
        "".join(delta.get("content", "") for delta in deltas)
        == (plain["choices"][0]["message"]["content"])
    )


def test_file_of_one_script(tmp_path, client):
    file = tmp_path / "script.json"
    steps = [{"send": "one"}, {"end": "eof"}]
    file.write_text(json.dumps({"script": [{"headers": {}, "steps": steps}]}, indent=1))

    with serving(file) as (url,):
        assert client.get(url).text == "one"
        assert client.get(url).status_code == 500


def test_file_of_several_cases(tmp_path, client):
    answers = {"a/1": [{"steps": [{"send": "A"}]}], "b": [{"steps": [], "repeat": True}]}
    cases = [{"id": name, "input": {"script": script}} for name, script in answers.items()]
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, cases)))

    with serving(file, lines=2) as lines:
        urls = dict(line.split(" ") for line in lines)

        assert list(urls) == ["a/1", "b"]
        assert [client.get(urls["a/1"]).status_code for _ in range(2)] == [200, 500]
        assert [client.get(urls["b"]).status_code for _ in range(2)] == [200, 200]
        assert client.get(urls["b"].replace("/b/", "/c/")).status_code == 500


@pytest.mark.parametrize("content", [None, "no script"])
def test_file_that_cannot_be_played_is_a_clear_error(tmp_path, content):
    file = tmp_path / "script.json"
    if content:
        file.write_text(content)

    command = [sys.executable, "-m", "tidegate.lab", file]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    assert ended.returncode == 1
    assert ended.stderr.startswith("python -m tidegate.lab: ")
    assert "Traceback" not in ended.stderr
