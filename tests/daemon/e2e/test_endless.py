"""A provider that never ends fills nobody's memory: its turn is ended, and all others go on."""

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.daemon.hosting import Sizes
from tidegate.lab import Answer, Lab, blast, chat
from tidegate.protocol.answers import Answer as Made
from tidegate.protocol.events import AttemptStarted, TextDelta, ToolCallDelta, TurnCompleted
from tidegate.testing.eventually import eventually


ENDLESS = Answer([chat.role(), blast([chat.text("x" * 100_000)], times=10_000)])


def test_turn_of_an_endless_answer_is_interrupted(serve):
    with Lab([ENDLESS, chat.answer("fine")]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client, Client(daemon.port) as reader:
            asked = {"endpoint": "main", "payload": PROMPT}
            turn_id = client.post("/v1/turns", json=asked).json()["id"]
            reader.ask("GET", f"/v1/turns/{turn_id}/events").until(b"xxx")

            assert lab.wait_closed(0, 30).how in ("eof", "reset")
            # Its end is kept behind all 64 MiB of it.
            eventually(lambda: client.get(f"/v1/turns/{turn_id}").json()["ended_at"], within_s=40)
            turn = client.get(f"/v1/turns/{turn_id}").json()
            assert turn["state"] == "interrupted"
            assert turn["reason"] == "there is more of it than 67108864 bytes"
            assert len(turn["answer"]["text"]) < 2 * 67108864
            assert client.post("/v1/chat/completions", json=PROMPT).status_code == 200


def delta(text, offset=1):
    return TextDelta("turn_1", 1, offset, 0.0, text)


@pytest.mark.parametrize(
    "events",
    [
        [delta("x" * 1000)],
        [ToolCallDelta("turn_1", 1, 1, 0.0, 0, arguments="x" * 1000)],
        [delta("") for _ in range(20)],
    ],
    ids=["words", "arguments", "nothing, often"],
)
def test_it_is_said_once_of_a_turn_and_of_no_other(events):
    sizes = Sizes(most=1000)
    assert not sizes.exceeds("turn_1", [AttemptStarted("turn_1", 1, 0, 0.0)])
    assert not sizes.exceeds("turn_2", [delta("x" * 900)])

    assert sizes.exceeds("turn_1", events)
    assert not sizes.exceeds("turn_1", events)
    assert not sizes.exceeds("turn_1", [TurnCompleted("turn_1", 1, 9, 0.0, Made())])
    assert sizes._sizes.keys() == {"turn_2"}
