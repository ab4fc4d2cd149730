"""Two hundred turns at once, with faults, interrupts, killed workers, and what must still hold."""

import asyncio
import os
import random
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat, frame, pace, raw, zipped


pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.slow, pytest.mark.timeout(120)]

TURNS = 200
SEED = 20_261_130
TERMINAL = (tg.TurnCompleted, tg.TurnFailed, tg.TurnInterrupted)


class Provider:
    """Answers each request by a draw that depends on the turn and the attempt alone."""

    def __init__(self):
        self._attempts = Counter()
        self.answered = Counter()

    def answer(self, request):
        name = request.json()["user"]
        self._attempts[name] += 1
        attempt = self._attempts[name]
        draw = random.Random(f"{SEED} {name} {attempt}")
        words = [chat.text(f"<{name}.{attempt}.{n}>") for n in range(draw.randint(1, 12))]
        [kind] = draw.choices([*WEIGHTS], [*WEIGHTS.values()])
        self.answered[kind.__name__] += 1
        return kind(words, draw)


def whole(words, draw):
    return chat.answer(steps=words)


def paced(words, draw):
    return Answer([chat.role(), pace(words, 0.02), chat.finish(), chat.usage(3, 7), chat.done()])


def in_pieces(words, draw):
    steps = [raw(each.data, piece=draw.randint(1, 40)) for each in words]
    return Answer([*steps, chat.finish(), chat.done(), End.EOF])


def compressed(words, draw):
    steps = [zipped(each.data) for each in (*words, chat.finish(), chat.done())]
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    return Answer([*steps, End.EOF], headers=headers)


def with_a_tool(words, draw):
    call = chat.tool(id="c1", name="look", arguments='{"at":')
    rest = chat.tool(arguments="1}")
    return Answer([*words, call, rest, chat.finish("tool_calls"), chat.done()])


def reset_at_once(words, draw):
    return Answer([End.RESET], headers_with_first_frame=True)


def cut_in_the_text(words, draw):
    return Answer([*words, draw.choice([End.CUT, End.RESET, End.EOF])])


def cut_in_a_tool(words, draw):
    return Answer([*words, chat.tool(id="c1", name="look", arguments='{"a'), End.CUT])


def stalled(words, draw):
    return Answer([*words, End.HOLD])


def refused(words, draw):
    return chat.error_answer(draw.choice([400, 401, 429, 500, 503, 529]), "no")


def error_inside(words, draw):
    return Answer([*words, frame({"error": {"message": "no", "code": 503}}), End.EOF])


def nonsense(words, draw):
    return Answer([*words, raw(b"data: <html>\n\n"), End.EOF])


def nothing(words, draw):
    return Answer([End.EOF])


WEIGHTS = {
    whole: 6,
    paced: 3,
    in_pieces: 2,
    compressed: 1,
    with_a_tool: 1,
    reset_at_once: 2,
    cut_in_the_text: 3,
    cut_in_a_tool: 2,
    stalled: 2,
    refused: 2,
    error_inside: 1,
    nonsense: 1,
    nothing: 1,
}


class Consumer:
    """Reads one turn, and interrupts it or stops reading after so many events if it drew that."""

    def __init__(self, number):
        self.name = f"t{number}"
        draw = random.Random(f"{SEED} consumer {number}")
        self.interrupts_after = draw.choice([None, None, None, 0, 1, 3, 8])
        self.leaves_after = draw.choice([None, None, None, 2, 5])
        self.policy = tg.Policy(
            retries=draw.randint(0, 3),
            backoff_s=(0.02,),
            stale_after_s=1.0,
            first_event_timeout_s=5.0,
            stale_giveup=0,
            after_visible_text=draw.choice(["stop", "restart"]),
            window_bytes=draw.choice([1 << 10, 1 << 18]),
        )
        self.turn = None
        self.outcome = None

    def start(self, runtime, lab):
        endpoint = tg.Endpoint.chat(lab.url, "key")
        payload = {"model": "m", "messages": [], "user": self.name}
        self.turn = runtime.start(tg.Request(endpoint, payload, policy=self.policy))

    def goes_on(self, count):
        if count == self.interrupts_after:
            self.turn.interrupt(self.name)
        return count != self.leaves_after

    def read(self, runtime, lab):
        self.start(runtime, lab)
        for count, _ in enumerate(self.turn):
            if not self.goes_on(count):
                break
        try:
            self.outcome = self.turn.result()
        except tg.TurnError as error:
            self.outcome = error

    async def read_in_a_task(self, runtime, lab):
        self.start(runtime, lab)
        count = 0
        async for _ in self.turn:
            if not self.goes_on(count):
                break
            count += 1
        try:
            self.outcome = await self.turn
        except tg.TurnError as error:
            self.outcome = error

    def check(self):
        """All that must hold of one turn, whatever happened to it."""
        events = list(self.turn)
        assert [event.offset for event in events] == list(range(len(events)))
        assert [type(event) for event in events if isinstance(event, TERMINAL)] == [
            type(events[-1])
        ]
        texts = text_by_attempt(events)
        answer = events[-1].answer
        assert "".join(texts.values()) == answer.text
        spoke = [event.attempt for event in events if isinstance(event, tg.TextDelta)]
        assert spoke == sorted(spoke)
        self.check_words(answer.text)
        tokens = [each.token for each in answer.attempts]
        assert tokens == sorted(set(tokens))
        self.check_outcome(events[-1], answer)

    def check_words(self, text):
        """They are this turn's, of one and the same answer, in order and without a gap."""
        words = text.split("><") if text else []
        about = [word.strip("<>").split(".") for word in words]
        assert {name for name, _, _ in about} <= {self.name}
        assert len({request for _, request, _ in about}) <= 1
        assert [int(number) for _, _, number in about] == list(range(len(about)))

    def check_outcome(self, terminal, answer):
        match terminal:
            case tg.TurnCompleted():
                assert self.outcome == answer
                assert answer.finish in ("stop", "tool_calls")
                assert not answer.partial
            case tg.TurnInterrupted(reason=reason):
                assert reason == self.name
                assert isinstance(self.outcome, tg.Interrupted)
            case tg.TurnFailed(error=failure):
                assert failure.kind not in ("internal", "interrupted")
                shown = self.outcome if answer.partial else self.outcome.answer
                assert shown == answer


def text_by_attempt(events):
    """Join the text of each attempt, without those that were declared void."""
    texts = {}
    for event in events:
        if isinstance(event, tg.TextDelta):
            texts[event.attempt] = texts.get(event.attempt, "") + event.text
        elif isinstance(event, tg.AttemptSuperseded):
            assert len(texts.pop(event.attempt, "")) == event.retracts
    return texts


def kill_workers(runtime, pids_of, lab):
    """Kill a worker while the turns are under way, twice."""
    for count in (30, 100):
        lab.wait_requests(count, timeout=60)
        _, pids = pids_of(runtime, 2)
        os.kill(pids[0], signal.SIGKILL)


def test_whatever_happens_each_turn_ends_once_and_rightly(pids_of):
    provider = Provider()
    consumers = [Consumer(number) for number in range(TURNS)]
    in_threads, in_tasks = consumers[::2], consumers[1::2]
    settings = tg.Settings(worker_restarts_max=1000)
    with (
        Lab([], route=provider.answer) as lab,
        tg.Runtime(workers=2, settings=settings) as runtime,
        ThreadPoolExecutor(len(in_threads)) as pool,
    ):

        async def all_tasks():
            await asyncio.gather(*(each.read_in_a_task(runtime, lab) for each in in_tasks))

        reading = [pool.submit(each.read, runtime, lab) for each in in_threads]
        loop = threading.Thread(target=lambda: asyncio.run(all_tasks()))
        loop.start()
        kill_workers(runtime, pids_of, lab)
        for each in reading:
            each.result()
        loop.join()

        for consumer in consumers:
            consumer.check()
        statistics = runtime.statistics()
        assert (statistics.turns, statistics.running) == (TURNS, 0)
        assert statistics.completed + statistics.failed + statistics.interrupted == TURNS
        assert min(statistics.completed, statistics.failed, statistics.interrupted) > 10
        assert len(provider.answered) == len(WEIGHTS)
        tokens = [each.token for one in consumers for each in one.turn.snapshot().attempts]
        # An interrupt that overtakes the admission makes an attempt that is in no report.
        assert len(tokens) == len(set(tokens)) <= statistics.attempts
