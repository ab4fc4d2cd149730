"""Every interleaving of a turn's items and end, the writes, timers, lag and a client that leaves.

Goal: in every state that can be reached there is at most one head, nothing after the end, no end
mark after an error, no heartbeat within frames or behind the last one, one write at a time; what
is written are the turn's frames in their order; whoever is cut off was slow; and the turn is left
once.
Method: the machine that runs, in a model of what is around it (``stream_model.py``); all states,
each visited once. A violation prints the labels of the way there.
"""

import pytest

from tests.daemon.machines.stream_model import EVENTS, STREAM, WHOLE, StreamModel
from tests.simulation.explorer import Exploration
from tidegate.daemon.stream import machine


TWO_TEXTS = ("fact", "text", "text", "done")
STREAMS = {
    "complete": (STREAM, TWO_TEXTS, {"normal"}),
    "failed": (STREAM, ("fact", "text", "text", "error"), {"error"}),
    "failed without content": (STREAM, ("fact", "error"), {"error", "whole"}),
    "complete without content": (STREAM, ("done",), {"normal"}),
    "many texts": (STREAM, ("text", "text", "text", "text", "done"), {"normal"}),
    "retry before content": (STREAM, ("fact", "retry", "text", "done"), {"normal"}),
    "retry after content": (STREAM, ("text", "text", "retry", "text", "done"), {"error"}),
    "events": (EVENTS, ("fact", "text", "retry", "fact", "text", "done"), {"normal"}),
    "events without any": (EVENTS, ("done",), {"normal"}),
    "answer in one piece": (WHOLE, ("fact", "text", "retry", "text", "done"), {"whole"}),
    "failure in one piece": (WHOLE, ("fact", "text", "error"), {"whole"}),
}


@pytest.mark.parametrize("piece_bytes", [2, 65_536])
@pytest.mark.parametrize("name", STREAMS)
def test_response(name, piece_bytes, monkeypatch):
    monkeypatch.setattr(machine, "PIECE_BYTES", piece_bytes)
    plan, script, ends = STREAMS[name]
    model = StreamModel(plan, script)
    exploration = Exploration(model, states_max=200_000)

    assert exploration.states > (200 if plan.streamed else 15)
    assert {ended for how, ended, *_ in model.ends if how == "ended"} >= ends
    cut = {"cut"} if plan.streamed else set()
    assert {how for how, *_ in model.ends} == {"ended", "left"} | cut
