"""Whether an endpoint that went stale too often is asked at all."""

import contextlib

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


# Two stale kills open it. What a turn's own policy says about it holds for that turn.
IMPATIENT = {
    "stale_after_s": 0.2,
    "first_event_timeout_s": 0.2,
    "stale_giveup": 2,
    "giveup_cooldown_s": 3600,
    "retries": 0,
}
PATIENT = IMPATIENT | {"stale_after_s": 60, "first_event_timeout_s": 60}


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2) as runtime:
        warm(runtime, 2)
        yield runtime


@pytest.fixture
def ask_as(ask, request):
    """Make a request that the lab knows by ``who``, to an endpoint that no other test knows."""
    own = {"headers": {"x-test": request.node.name}}

    def make(lab, who="", policy=PATIENT, *, model="test-model", **changed):
        payload = {"model": model, "messages": [], "user": who}
        return ask(lab, payload, options=own, **(policy | changed))

    return make


def a_lab(**answers):
    """Be silent towards everybody but these."""
    silent = Answer([End.HOLD], repeat=True)
    return Lab([silent], route=lambda request: answers.get(request.json()["user"]))


def go_stale(runtime, request):
    with pytest.raises(tg.StreamStalled):
        runtime.run(request)


def test_open_breaker_sends_nothing(runtime, ask_as):
    with a_lab(refused=chat.answer("never sent")) as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))

        with pytest.raises(RuntimeError, match="unresponsive") as raised:
            runtime.run(ask_as(lab, "refused"))

        assert type(raised.value) is tg.CircuitOpen
        assert raised.value.failure.retry_after_s > 0
        assert raised.value.answer.attempts == ()
        assert [each for each in lab.requests if each.json()["user"]] == []


def test_half_open_breaker_lets_one_turn_through(runtime, ask_as):
    held = Answer([chat.role(), gate("probing"), *chat.answer("back").steps])
    with a_lab(probe=held, next=chat.answer("again")) as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))

        probe = runtime.start(ask_as(lab, "probe", giveup_cooldown_s=0))
        lab.reached("probing")
        with pytest.raises(tg.CircuitOpen):
            runtime.run(ask_as(lab, "next", giveup_cooldown_s=0))
        lab.open("probing")

        assert probe.result().text == "back"
        assert runtime.run(ask_as(lab, "next")).text == "again"


def test_probe_that_goes_stale_keeps_it_open(runtime, ask_as):
    with a_lab() as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT, giveup_cooldown_s=0))

        with pytest.raises(tg.CircuitOpen):
            runtime.run(ask_as(lab))


def test_probe_that_is_interrupted_leaves_its_place(runtime, ask_as):
    with a_lab(next=chat.answer("back")) as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        probe = runtime.start(ask_as(lab, giveup_cooldown_s=0))
        Reading(probe).until(tg.AttemptStarted)

        probe.interrupt()

        with pytest.raises(tg.Interrupted):
            probe.result()
        assert runtime.run(ask_as(lab, "next", giveup_cooldown_s=0)).text == "back"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(chat.answer("fine"), id="complete"),
        pytest.param(chat.error_answer(401, "no"), id="an HTTP error"),
    ],
)
def test_answer_closes_it(runtime, ask_as, answer):
    with a_lab(between=answer, last=chat.answer("fine")) as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        with contextlib.suppress(tg.AuthRejected):
            runtime.run(ask_as(lab, "between"))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))

        assert runtime.run(ask_as(lab, "last")).text == "fine"


def test_one_outage_counts_once(runtime, ask_as):
    with a_lab(last=chat.answer("fine")) as lab:
        turns = [runtime.start(ask_as(lab, policy=IMPATIENT)) for _ in range(3)]
        for turn in turns:
            with pytest.raises(tg.StreamStalled):
                turn.result()

        assert runtime.run(ask_as(lab, "last")).text == "fine"


def test_breaker_that_gives_up_after_no_kill_stays_shut(runtime, ask_as):
    with a_lab(last=chat.answer("fine")) as lab:
        for _ in range(3):
            go_stale(runtime, ask_as(lab, policy=IMPATIENT, stale_giveup=0))

        assert runtime.run(ask_as(lab, "last", stale_giveup=0)).text == "fine"


def test_models_are_told_apart(runtime, ask_as):
    with a_lab(last=chat.answer("fine")) as lab:
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))
        go_stale(runtime, ask_as(lab, policy=IMPATIENT))

        assert runtime.run(ask_as(lab, "last", model="other-model")).text == "fine"
