"""What a machine decides: facts for its own state, and orders to its shell."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar


EventT = TypeVar("EventT")
EffectT = TypeVar("EffectT")


class Decision(NamedTuple, Generic[EventT, EffectT]):
    """The meaning of one message in one state.

    Attributes:
        events: facts, for ``evolve``, in their order.
        effects: orders to the shell, to be carried out in their order.
    """

    events: tuple[EventT, ...] = ()
    effects: tuple[EffectT, ...] = ()
