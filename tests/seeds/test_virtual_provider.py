"""A provider whose streams share one client: an interrupt ends the stream and leaves the client."""

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, send
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


@pytest.mark.parametrize("placement", ["worker", "inline"])
def test_moa_interrupt_closes_stream_handle(tmp_path, monkeypatch, placement):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    notes = tmp_path / "notes"
    word = send("word\n")
    with (
        Lab([Answer([word, End.HOLD]), Answer([word, End.EOF])]) as lab,
        tg.Runtime(workers=1) as runtime,
    ):
        endpoint = tg.Endpoint.custom("facade:Facade", placement=placement)
        request = tg.Request(endpoint, {"url": f"{lab.url}/any", "notes": str(notes)})
        turn = runtime.start(request)
        Reading(turn).until(tg.TextDelta)

        assert turn.interrupt("stop")

        with pytest.raises(InterruptedError):
            turn.result()
        assert lab.wait_closed(0).how in ("eof", "reset")
        eventually(lambda: notes.read_text() == "created\nstream closed\n")
        assert len(lab.requests) == 1
        # The client serves the next stream, in the same process or thread.
        assert runtime.run(request).text == "word"
        assert runtime.statistics().workers_killed == 0
        assert notes.read_text() == 2 * "created\nstream closed\n"
