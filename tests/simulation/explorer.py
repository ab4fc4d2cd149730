"""Walks through every state that a model can reach, and shows the way to one that must not be.

A model has ``first()``, ``steps(state)``, which yields labels and next states, ``optional``, the
kinds of labels (the first item of each) that may never happen, and ``check_end(state)``. States are
hashable; equal ones are visited once. Safety is the model's own: it raises ``AssertionError`` where
a rule is broken. Liveness is checked here: whatever may never happen left out, every way leads to
an end.
"""

from __future__ import annotations

import gc


class Violation(AssertionError):
    """A rule was broken; ``path`` are the labels that lead there."""

    def __init__(self, why, path):
        steps = "\n".join(f"  {label!r}," for label in path)
        super().__init__(f"{why}\nreplay it with these labels:\n{steps}")
        self.path = tuple(path)


class Exploration:
    """All states of a model.

    Attributes:
        states: how many there are.
        ends: how many of them are ends.
        steps: how many steps lead from one to another.
    """

    def __init__(self, model, *, states_max):
        self._model = model
        self._numbers = {}
        self._came_from = []
        self._must = []  # for each state the states that something must lead to
        self.ends = self.steps = 0
        # Nothing made here is ever garbage, and looking for some takes a quarter of the time.
        gc.disable()
        try:
            self._walk(states_max)
            self.states = len(self._numbers)
            self._check_no_circle()
        finally:
            gc.enable()

    def path_to(self, number):
        """Return the labels from the first state to the one of that number."""
        labels = []
        while number:
            number, label = self._came_from[number]
            labels.append(label)
        return labels[::-1]

    def _walk(self, states_max):
        model, numbers, came_from = self._model, self._numbers, self._came_from
        kinds = model.optional
        first = model.first()
        numbers[first] = 0
        came_from.append((0, None))
        waiting = [first]
        for number, state in enumerate(waiting):
            must = []
            try:
                for label, reached in model.steps(state):
                    self.steps += 1
                    place = numbers.get(reached)
                    if place is None:
                        place = numbers[reached] = len(waiting)
                        waiting.append(reached)
                        came_from.append((number, label))
                    if label[0] not in kinds:
                        must.append(place)
                if not must:
                    self.ends += 1
                    model.check_end(state)
            except AssertionError as error:
                doing = [] if model.doing is None else [model.doing]
                raise Violation(error, [*self.path_to(number), *doing]) from error
            waiting[number] = None  # the keys of ``numbers`` keep it as long as it is needed
            self._must.append(must)
            assert len(waiting) <= states_max, f"over {states_max} states: shrink the scenario"

    def _check_no_circle(self):
        """Take away ends again and again: what is left goes round in circles for ever."""
        into = [[] for _ in self._must]
        open_ways = [len(must) for must in self._must]
        for number, must in enumerate(self._must):
            for place in must:
                into[place].append(number)
        ended = [number for number, ways in enumerate(open_ways) if not ways]
        for number in ended:
            for place in into[number]:
                open_ways[place] -= 1
                if not open_ways[place]:
                    ended.append(place)
        if len(ended) < len(open_ways):
            stuck = next(number for number, ways in enumerate(open_ways) if ways)
            raise Violation("R10: it may go on for ever", self.path_to(stuck))


def replay(model, labels):
    """Walk one path again and yield each label with the state it leads to."""
    state = model.first()
    for label in labels:
        state = next(reached for found, reached in model.steps(state) if found == label)
        yield label, state
