"""What the provider of the crash test answers: it depends on the turn's name and the attempt alone.

The words of a turn are numbered, so that each attempt's text shows what is missing or strange.
"""

import random
from collections import Counter

from tidegate.lab import Answer, End, chat, pace


WORDS_MAX = 4000
"""More than any turn can say before its daemon is killed."""


def words_of(name, count):
    """Return the first words that a turn of this name says, in every attempt."""
    return [f"<{name}.{number}>" for number in range(count)]


class Provider:
    """Answers by name.

    Args:
        seed: another one is another test.
    """

    def __init__(self, seed):
        self._seed = seed
        self._attempts = Counter()
        self.answered = Counter()

    def answer(self, request):
        name = request.json()["model"]
        self._attempts[name] += 1
        dice = random.Random(f"{self._seed} {name} {self._attempts[name]}")
        [kind] = dice.choices([*WEIGHTS], [*WEIGHTS.values()])
        self.answered[kind.__name__] += 1
        return kind(name, dice)


def paced(name, dice, count=None):
    words = words_of(name, count or dice.randint(1, 30))
    return pace([chat.text(word) for word in words], dice.choice((0.02, 0.05, 0.1)))


def whole(name, dice):
    return Answer([chat.role(), paced(name, dice), chat.finish(), chat.usage(3, 7), chat.done()])


def at_once(name, dice):
    return chat.answer(*words_of(name, dice.randint(1, 60)))


def without_end(name, dice):
    return Answer([chat.role(), paced(name, dice, WORDS_MAX)])


def held(name, dice):
    return Answer([chat.role(), paced(name, dice, 3), End.HOLD])


def refused(name, dice):
    return chat.error_answer(dice.choice((400, 500, 503)), "no")


def cut(name, dice):
    return Answer([chat.role(), paced(name, dice, 5), dice.choice((End.CUT, End.RESET))])


def error_inside(name, dice):
    return Answer([chat.role(), paced(name, dice, 2), chat.error("no", code=503), End.EOF])


WEIGHTS = {
    whole: 5,
    at_once: 1,
    without_end: 6,
    held: 2,
    refused: 2,
    cut: 3,
    error_inside: 1,
}
