"""The supervisor, as a part of the model.

What a state is compared by leaves out counters, and the breakers and memories that only the start
of another turn would ask.
"""

from __future__ import annotations

import msgspec

from tests.simulation.tables import Table, copied, encode
from tidegate.actors.supervisor.supervision import Supervision
from tidegate.protocol.sink import Admit
from tidegate.protocol.supervisor import Interrupt


class SupervisorPart:
    """The supervisor, and whether it has taken an interrupt.

    Args:
        messages: the messages' numbers.
        supervision: as it is before its first message.
    """

    def __init__(self, messages, supervision):
        self.states = Table()
        self._messages = messages
        self._steps = {}
        self.first = self._number(supervision, interrupted=False)

    def take(self, number, message, now_s):
        """Return the next state, and the orders in their order."""
        key = (number, message, now_s)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._take(*key)
        return step

    def supervision(self, number):
        """Return the supervision in a state."""
        return self.states.things[number][0]

    def _take(self, number, message_number, now_s):
        message = self._messages.things[message_number]
        before, interrupted = self.states.things[number]
        supervision = copy_of_supervision(before)
        orders = supervision.handle(message, now_s)
        interrupted = interrupted or isinstance(message, Interrupt)
        self._check(message, before, orders, interrupted=interrupted)
        return self._number(supervision, interrupted=interrupted), tuple(orders)

    def _check(self, message, before, orders, *, interrupted):
        names = [_name_of(order) for order in orders]
        if interrupted:
            assert "StartAttempt" not in names, "R7: a start behind an interrupt"
        if "StartAttempt" in names:
            place = names.index("StartAttempt")
            admit, start = orders[place - 1].message, orders[place].message
            assert isinstance(admit, Admit), "R2: no admission before the start"
            assert admit.token == start.token, "R2: another token was admitted"
        turn = before.turns.get(1)
        if isinstance(message, Interrupt) and turn is not None and turn.phase != "ended":
            assert names[0] == "Seal", "R6: an interrupt seals at once"

    def _number(self, supervision, *, interrupted):
        key = encode((_key_of_supervision(supervision), interrupted))
        return self.states.number((supervision, interrupted), key)


def _name_of(order):
    return type(getattr(order, "message", order)).__name__


def copy_of_supervision(old):
    """Return a supervision that can be changed without changing ``old``."""
    new = Supervision.__new__(Supervision)
    for name, value in vars(old).items():
        setattr(new, name, copied(value))
    return new


def _key_of_supervision(supervision):
    turns = [
        msgspec.structs.replace(turn, plan=None, started_s=0.0)
        for turn in supervision.turns.values()
    ]
    return (
        turns,
        supervision.pool,
        supervision._token,
        sorted(supervision._token_turns.items()),
        supervision._early,
        supervision._newest_turn,
    )
