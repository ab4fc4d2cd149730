"""The walk through all states: what it finds, and that it shows the way."""

import pytest

from tests.simulation.explorer import Exploration, Violation, replay


class Graph:
    """A model whose states are letters.

    Args:
        ways: for each letter the letters it leads to; one in upper case may never happen.
        wrong: an end that is none.
        forbidden: a letter that must not be reached.
    """

    optional = frozenset({"may"})

    def __init__(self, ways, *, wrong="", forbidden="?"):
        self._ways = ways
        self._wrong = wrong
        self._forbidden = forbidden
        self.doing = None

    def first(self):
        return "a"

    def steps(self, state):
        for letter in self._ways.get(state, ""):
            kind = "may" if letter.isupper() else "must"
            self.doing = (kind, letter.lower())
            assert letter.lower() != self._forbidden, "forbidden"
            yield self.doing, letter.lower()
        self.doing = None

    def check_end(self, state):
        assert state != self._wrong, "this is no end"


def explore(ways, **fields):
    return Exploration(Graph(ways, **fields), states_max=10)


def test_every_state_is_visited_once():
    exploration = explore({"a": "bc", "b": "d", "c": "d"})

    assert (exploration.states, exploration.steps, exploration.ends) == (4, 4, 1)


def test_step_that_breaks_a_rule_is_shown_with_its_way():
    with pytest.raises(Violation, match="forbidden") as caught:
        explore({"a": "b", "b": "cd", "c": "e"}, forbidden="e")

    assert caught.value.path == (("must", "b"), ("must", "c"), ("must", "e"))


def test_end_that_is_none_is_shown():
    with pytest.raises(Violation, match="no end") as caught:
        explore({"a": "bc"}, wrong="c")

    assert caught.value.path == (("must", "c"),)


def test_state_from_which_nothing_must_happen_is_an_end():
    with pytest.raises(Violation, match="no end"):
        explore({"a": "b", "b": "C"}, wrong="b")


def test_circle_is_found():
    with pytest.raises(Violation, match="for ever"):
        explore({"a": "b", "b": "cd", "c": "a"})


def test_circle_of_what_need_not_happen_is_none():
    assert explore({"a": "b", "b": "Ac"}).states == 3


def test_too_many_states_are_a_failure():
    with pytest.raises(AssertionError, match="over 1 states"):
        Exploration(Graph({"a": "b"}), states_max=1)


def test_way_can_be_walked_again():
    graph = Graph({"a": "bc", "c": "de"})

    assert list(replay(graph, [("must", "c"), ("must", "e")])) == [
        (("must", "c"), "c"),
        (("must", "e"), "e"),
    ]
