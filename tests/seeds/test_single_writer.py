"""Of all attempts at a turn, one may write; what any other one sends changes nothing."""

import pykka
import pytest

import tidegate as tg
from tidegate.actors.sink.actor import SinkActor
from tidegate.actors.sink.channel import TurnChannel
from tidegate.lab import Answer, End, Lab, chat, gate, send
from tidegate.protocol.attempts import Deltas
from tidegate.protocol.base import Generation, Seq, Token, TurnNumber
from tidegate.protocol.deltas import Reasoning, Text
from tidegate.protocol.sink import Admit, Fence, OpenTurn
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


TURN = TurnNumber(1)
OLDER, NEWER = Token(1), Token(2)


@pytest.fixture
def channel():
    return TurnChannel(TURN, "turn_1", review=lambda turn: None)


@pytest.fixture
def sink(channel):
    """A real sink actor with one turn, to which both tokens were admitted."""
    actor = SinkActor(
        channels={TURN: channel},
        report=lambda message: None,
        grant=lambda generation, grant: None,
        down=lambda error: None,
        clock=lambda: 0.0,
        epoch_s=0.0,
    )
    actor.launch()
    actor.mailbox.tell(OpenTurn(TURN, "turn_1", "chat", 1 << 18))
    for number, token in enumerate((OLDER, NEWER), start=1):
        admit = Admit(TURN, token, number, free=False, endpoint="chat", generation=Generation(1))
        actor.mailbox.tell(admit)
    yield actor
    actor.halt(10)
    assert actor.actor_ref not in pykka.ActorRegistry.get_all()


def test_superseded_writer_deltas_are_dropped(sink, channel):
    reader = channel.attach()
    late = (Text("A-should-drop"), Reasoning("A-reason-drop"))
    sink.mailbox.tell(Deltas(TURN, OLDER, Seq(0), late))
    sink.mailbox.tell(Deltas(TURN, OLDER, Seq(2), (Text("A-record-drop"),)))
    sink.mailbox.tell(Deltas(TURN, NEWER, Seq(0), (Text("B"),)))
    eventually(lambda: channel.snapshot().text)

    answer = channel.snapshot()
    sink.halt(10)

    taken = list(iter(lambda: channel.take(reader), None))
    assert [each.text for each in taken if not isinstance(each, tg.AttemptStarted)] == ["B"]
    assert (answer.text, answer.reasoning) == ("B", "")
    assert sink.refused == {"stale_token": 2}


def test_fenced_writer_deltas_are_dropped_before_there_is_a_newer_one(sink, channel):
    failure = tg.Failure(kind=tg.FailureKind.TRUNCATED)
    sink.mailbox.tell(Deltas(TURN, NEWER, Seq(0), (Text("B"),)))
    sink.mailbox.tell(Fence(TURN, NEWER, failure))
    sink.mailbox.tell(Deltas(TURN, NEWER, Seq(1), (Text("B-should-drop"),)))

    eventually(lambda: sink.refused)
    assert sink.refused == {"fenced": 1}
    assert channel.snapshot().text == "B"


def test_current_writer_is_never_fenced(asking):
    with Lab([chat.answer("hello ", "world")]) as lab, tg.Runtime(workers=1) as runtime:
        reading = Reading(runtime.start(asking(lab)))
        reading.to_end()

        assert "".join(reading.texts) == "hello world"
        assert runtime.statistics().refused == {}


def test_current_writer_is_never_fenced_by_the_sink(sink, channel):
    sink.mailbox.tell(Deltas(TURN, NEWER, Seq(0), (Text("hello "),)))
    sink.mailbox.tell(Deltas(TURN, NEWER, Seq(1), (Text("world"),)))

    eventually(lambda: channel.snapshot().text == "hello world")
    assert sink.refused == {}


def test_non_claiming_thread_is_not_a_writer(runtime, asking):
    quiet = Answer([chat.role(), gate("others have claimed"), *chat.answer("plain").steps])
    cut = Answer([chat.role(), End.CUT])
    with Lab([quiet, cut, cut, chat.answer("other")]) as lab:
        turn = runtime.start(asking(lab))
        lab.reached("others have claimed")

        other = runtime.run(asking(lab))
        lab.open("others have claimed")

        reading = Reading(turn)
        reading.to_end()
        assert reading.texts == ["plain"]
        mine, *others = [each.token for each in (*turn.result().attempts, *other.attempts)]
        assert len(others) == 3
        assert mine < min(others)


def test_consume_loop_stops_when_superseded_mid_stream(runtime, asking, worker_stopped):
    """The newer attempt brings nothing, so that the first one stays the answer."""
    tail = chat.delta({"content": "-stale-tail"}), chat.finish()
    old = Answer([chat.text("first"), gate("superseded"), *tail, gate("sent"), End.HOLD])
    refused = chat.error_answer(400, "no")
    new = Answer(
        [gate("tail sent"), *refused.steps],
        status=400,
        headers=refused.headers,
        headers_with_first_frame=True,
    )
    with Lab([old, new]) as lab:
        patience = {"stale_after_s": 0.5, "first_event_timeout_s": 30, "kill_grace_s": 30}
        turn = runtime.start(asking(lab, after_visible_text="restart", **patience))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        resume = worker_stopped(runtime, turn)
        lab.reached("tail sent")

        lab.open("superseded")
        lab.reached("sent")
        resume()
        lab.wait_closed(0)
        lab.open("tail sent")

        reading.to_end()
        answer = turn.result()
        assert reading.texts == ["first"]
        assert reading.all(tg.AttemptSuperseded) == []
        assert answer.text == "first"
        assert answer.partial
        assert [each.number for each in answer.attempts] == [1, 2]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("data: 7\n\n", id="no object"),
        pytest.param('data: {"choices":[{"index":0,"delta":7}]}\n\n', id="delta is a number"),
    ],
)
def test_chat_parser_failure_closes_managed_stream(runtime, asking, frame):
    with Lab([Answer([send(frame), End.HOLD])]) as lab:
        with pytest.raises(tg.MalformedStream) as raised:
            runtime.run(asking(lab))

        assert lab.wait_closed(0).how in ("eof", "reset")
        assert len(lab.requests) == 1
        assert len(raised.value.answer.attempts) == 1
        assert raised.value.raw_text in frame
