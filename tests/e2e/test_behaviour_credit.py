"""How far a provider may run ahead: a reader that stops stops its provider, and nobody else's."""

import pytest

import tidegate as tg
from tests.e2e.scripts import LEFT
from tidegate.lab import Answer, End, Lab, blast, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


WINDOW = 1 << 16

PIECE = "x" * (1 << 16)
PIECES = 384
"""24 MiB in all, far more than a window and the kernel's buffers hold."""


@pytest.fixture(scope="module")
def runtime():
    # One worker, so that a turn that goes on shows that nobody waits in another one's place.
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


@pytest.fixture
def torrent():
    """Much text, as fast as it is read, then a gate, then the finish."""
    words = chat.text(PIECE)
    return Answer(
        [chat.text("first"), blast([words], times=PIECES), gate("all written"), chat.finish()]
    )


def stops_at_the_window(runtime, ask, turn):
    """Wait until a turn's worker has ceased to read, and return how much of the text there is."""
    eventually(lambda: len(turn.snapshot().text) >= WINDOW)
    # Behind another turn of the same worker lies all that it had read before.
    with Lab([chat.answer("meanwhile")]) as other:
        assert runtime.run(ask(other)).text == "meanwhile"
    return len(turn.snapshot().text)


def test_provider_waits_for_a_reader_that_stopped(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        turn = runtime.start(ask(lab, window_bytes=WINDOW))
        reading = Reading(turn)
        reading.until(tg.TextDelta)

        before = stops_at_the_window(runtime, ask, turn)
        assert stops_at_the_window(runtime, ask, turn) == before

        with pytest.raises(TimeoutError):
            lab.reached("all written", timeout=0)
        lab.open("all written")
        reading.to_end()
        assert len("".join(reading.texts)) == len("first") + PIECES * len(PIECE)
        assert turn.result().finish == "stop"


def test_provider_of_a_turn_that_nobody_reads_waits(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        turn = runtime.start(ask(lab, window_bytes=WINDOW))

        before = stops_at_the_window(runtime, ask, turn)
        assert stops_at_the_window(runtime, ask, turn) == before

        with pytest.raises(TimeoutError):
            lab.reached("all written", timeout=0)
        turn.interrupt()
        assert lab.wait_closed(0).how in LEFT


def test_who_waits_for_the_answer_lifts_the_window(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        turn = runtime.start(ask(lab, window_bytes=WINDOW))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        stops_at_the_window(runtime, ask, turn)
        lab.open("all written")

        answer = turn.result()

        assert len(answer.text) == len("first") + PIECES * len(PIECE)
        reading.to_end()
        assert "".join(reading.texts) == answer.text


def test_callback_lifts_the_window(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        lab.open("all written")
        heard = []

        answer = runtime.run(ask(lab, window_bytes=1), heard.append)

        texts = [event.text for event in heard if isinstance(event, tg.TextDelta)]
        assert "".join(texts) == answer.text


def test_reader_that_leaves_holds_up_nobody(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        turn = runtime.start(ask(lab, window_bytes=WINDOW))
        slow = iter(turn)
        next(slow)
        quick = Reading(turn)
        quick.until(tg.TextDelta)
        stops_at_the_window(runtime, ask, turn)
        lab.open("all written")

        slow.close()

        quick.to_end()
        assert len("".join(quick.texts)) == len("first") + PIECES * len(PIECE)


def test_clocks_stand_still_while_a_provider_has_to_wait(runtime, ask, torrent):
    impatient = {"stale_after_s": 0.5, "alive_timeout_s": 0.5, "retries": 0}
    with Lab([torrent]) as lab, Lab([Answer([chat.text("a"), End.HOLD])]) as silent:
        lab.open("all written")
        turn = runtime.start(ask(lab, window_bytes=WINDOW, first_event_timeout_s=30, **impatient))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        stops_at_the_window(runtime, ask, turn)
        # That one goes stale by the same budget, and it began later.
        with pytest.raises(tg.StreamStalled):
            runtime.run(ask(silent, first_event_timeout_s=30, **impatient))

        reading.to_end()

        assert turn.result().finish == "stop"
        assert len(turn.result().attempts) == 1


def test_interrupt_does_not_wait_for_credit(runtime, ask, torrent):
    with Lab([torrent]) as lab:
        turn = runtime.start(ask(lab, window_bytes=WINDOW))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        stops_at_the_window(runtime, ask, turn)

        turn.interrupt()

        assert isinstance(reading.to_end(), tg.TurnInterrupted)
        assert lab.wait_closed(0).how in LEFT
