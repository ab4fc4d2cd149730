"""The example of the documentation works, in both places."""

import re
import sys
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, send
from tidegate.testing.reading import Reading


PAGE = Path(__file__).parents[2] / "docs" / "custom.md"
BLOCK = re.compile(r"^```python\n# my_streams.py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    [block] = BLOCK.findall(PAGE.read_text())
    (tmp_path / "my_streams.py").write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    with tg.Runtime(workers=1) as runtime:
        yield runtime
    sys.modules.pop("my_streams", None)


@pytest.mark.parametrize("placement", ["worker", "inline"])
def test_example_streams_and_can_be_interrupted(runtime, placement):
    words = [send('{"word": "hello"}\n'), send('{"word": " world"}\n')]
    whole = Answer([*words, send('{"tokens": 2}\n'), End.EOF])
    with Lab([whole, Answer([words[0], End.HOLD])]) as lab:
        endpoint = tg.Endpoint.custom("my_streams:MyStreams", placement=placement)
        request = tg.Request(endpoint, {"url": f"{lab.url}/any", "body": {"asked": "hello"}})

        answer = runtime.run(request)

        assert (answer.text, answer.finish, answer.usage.output_tokens) == (
            "hello world",
            "stop",
            2,
        )
        assert lab.requests[0].json() == {"asked": "hello"}

        turn = runtime.start(request)
        Reading(turn).until(tg.TextDelta)
        turn.interrupt()
        assert lab.wait_closed(1).how in ("eof", "reset")
