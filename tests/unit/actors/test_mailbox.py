"""The mailbox and the loop behind it, one hole of pykka's at a time."""

import threading

import pykka
import pytest
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from tidegate.actors.mailbox import Mailbox, Shell


WAIT_S = 10


class Urgent:
    """Takes the fast lane."""


class Listener(Shell):
    """Keeps what it is told and how it ended; ``gate`` holds up its first step."""

    FAST = (Urgent,)

    def __init__(self, *, held=False):
        super().__init__()
        self.heard = []
        self.ends = []
        self.busy = threading.Event()
        self.gate = threading.Event()
        if not held:
            self.gate.set()
        self.ended = threading.Event()

    def on_message(self, message):
        self.busy.set()
        assert self.gate.wait(WAIT_S)
        if isinstance(message, BaseException):
            raise message
        self.heard.append(message)

    def on_ask(self, message):
        if isinstance(message, BaseException):
            raise message
        return message

    def down(self, error):
        self.ends.append(error)
        self.ended.set()


@pytest.fixture
def listener():
    shell = Listener()
    shell.launch()
    yield shell
    shell.halt(WAIT_S)
    assert not shell.thread.is_alive()


@pytest.fixture
def held():
    """A listener that is at its first message, which waits for the gate."""
    shell = Listener(held=True)
    shell.launch()
    shell.mailbox.tell("first")
    assert shell.busy.wait(WAIT_S)
    yield shell
    shell.gate.set()
    shell.halt(WAIT_S)


def told(*messages, fast=()):
    mailbox = Mailbox(fast)
    for message in messages:
        mailbox.tell(message)
    return mailbox


def taken(mailbox, count):
    return [mailbox.get().message for _ in range(count)]


def test_slow_lane_is_first_in_first_out():
    assert taken(told(1, 2, 3), 3) == [1, 2, 3]


def test_fast_lane_goes_before_the_other():
    urgent = Urgent()

    assert taken(told(1, urgent, 2, fast=(Urgent,)), 3) == [urgent, 1, 2]


def test_fast_lane_is_first_in_first_out():
    first, second = Urgent(), Urgent()

    assert taken(told(1, first, second, fast=(Urgent,)), 3) == [first, second, 1]


def test_stop_takes_the_fast_lane():
    assert isinstance(told(1, _ActorStop()).get().message, _ActorStop)


def test_what_was_taken_is_no_dead_letter():
    mailbox = told(Urgent(), 1, fast=(Urgent,))
    taken(mailbox, 2)

    mailbox.close()

    assert mailbox.empty()
    assert not mailbox.dead_letters


def test_messages_behind_a_close_are_dead_letters():
    mailbox = told(1, "a", Urgent(), fast=(Urgent,))

    mailbox.close()
    mailbox.tell("b")

    assert mailbox.dead_letters == {"int": 1, "str": 2, "Urgent": 1}
    assert mailbox.empty()


def test_ask_behind_a_close_is_answered():
    mailbox = told()
    mailbox.close()
    reply = pykka.ThreadingFuture()

    mailbox.put(Envelope("late", reply_to=reply))

    with pytest.raises(pykka.ActorDeadError):
        reply.get(timeout=WAIT_S)


def test_stop_behind_a_close_is_answered_as_done():
    mailbox = told()
    mailbox.close()
    reply = pykka.ThreadingFuture()

    mailbox.put(Envelope(_ActorStop(), reply_to=reply))

    assert reply.get(timeout=WAIT_S) is None


def test_fast_message_overtakes_what_waits(held):
    urgent = Urgent()
    held.mailbox.tell("second")
    held.mailbox.tell(urgent)
    held.gate.set()

    held.actor_ref.ask("are you there")

    assert held.heard == ["first", urgent, "second"]


def test_ask_is_answered(listener):
    assert listener.actor_ref.ask("hello", timeout=WAIT_S) == "hello"


def test_ask_that_cannot_be_answered_raises_and_ends_the_actor(listener):
    fault = ValueError("what?")

    with pytest.raises(ValueError, match="what"):
        listener.actor_ref.ask(fault, timeout=WAIT_S)

    assert listener.ended.wait(WAIT_S)
    assert listener.ends == [fault]


def test_actor_that_answers_nothing_says_so():
    shell = Shell()
    shell.launch()

    with pytest.raises(NotImplementedError, match="Shell answers no str"):
        shell.actor_ref.ask("hello", timeout=WAIT_S)

    shell.halt(WAIT_S)


@pytest.mark.parametrize("fault", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_exception_ends_its_own_actor_and_no_other(fault):
    struck, other = Listener(), Listener()
    struck.launch()
    other.launch()

    struck.mailbox.tell(fault)

    assert struck.ended.wait(WAIT_S)
    assert struck.ends == [fault]
    assert other.actor_ref.ask("still there", timeout=WAIT_S) == "still there"
    other.halt(WAIT_S)
    assert other.ends == [None]


def test_end_is_reported_once_when_the_start_fails():
    class Stillborn(Listener):
        def on_start(self):
            raise OSError("no")

    shell = Stillborn()
    shell.launch()

    assert shell.ended.wait(WAIT_S)
    shell.halt(WAIT_S)
    assert [type(error) for error in shell.ends] == [OSError]
    assert not shell.actor_ref.is_alive()


def test_end_is_reported_once_however_often_it_is_stopped(listener):
    for _ in range(3):
        listener.end()
    listener.halt(WAIT_S)
    listener.actor_ref.stop(timeout=WAIT_S)

    assert listener.ends == [None]
    # The two others came too late, as the one of ``halt``.
    assert listener.mailbox.dead_letters["_ActorStop"] == 3


def test_stop_does_not_wait_for_a_backlog(held):
    for number in range(5_000):
        held.mailbox.tell(number)
    held.end()

    held.gate.set()

    assert held.ended.wait(WAIT_S)
    assert held.heard == ["first"]
    assert held.mailbox.dead_letters == {"int": 5_000}


def test_stop_that_is_asked_for_ends_the_loop(listener):
    assert listener.actor_ref.stop(timeout=WAIT_S)

    assert listener.ended.wait(WAIT_S)
    assert not listener.actor_ref.is_alive()


def test_halt_from_the_actor_itself_does_not_wait_for_itself():
    class Quitter(Listener):
        def on_message(self, message):
            self.halt(WAIT_S)

    shell = Quitter()
    shell.launch()
    shell.mailbox.tell("go")

    assert shell.ended.wait(WAIT_S)
    assert shell.ends == [None]


def test_ask_that_races_with_a_stop_is_always_answered():
    answers = []
    for _ in range(1_000):
        shell = Listener()
        shell.launch()
        asked = shell.actor_ref.ask("hello", block=False)
        stopper = threading.Thread(target=shell.end)
        stopper.start()
        late = shell.actor_ref.ask("once more", block=False)
        for future in (asked, late):
            try:
                answers.append(future.get(timeout=WAIT_S))
            except pykka.ActorDeadError:
                answers.append("dead")
        stopper.join()
        shell.halt(WAIT_S)
        assert shell.ends == [None]

    assert len(answers) == 2_000
    assert set(answers) <= {"hello", "once more", "dead"}
