"""Servers of the Responses wire that name and announce things each in its own way.

*Goal*: the same answer from all of them, and of a body that is cut off never a call that is not
whole.
*Method*: random outputs, written as events in a random manner, and interleaved.
"""

import itertools
import json
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.actors.provider.responses_golden import (
    added,
    answer_of,
    call,
    completed,
    decode,
    done,
    event,
    message,
)


class Manner(NamedTuple):
    """How a server writes an item."""

    places: bool  # whether it tells the place in the output
    ids: str  # whether an item has an id, and whether it stays the same
    announces: bool
    sums_up: bool  # whether it repeats the arguments or the text when they are whole
    confirms: bool  # whether it says that the item is done


MANNERS = st.builds(
    Manner,
    places=st.booleans(),
    ids=st.sampled_from(["stable", "changing", "none"]),
    announces=st.booleans(),
    sums_up=st.booleans(),
    confirms=st.booleans(),
).filter(
    # What an item is must be told somewhere, and of a call also how it is called.
    lambda manner: (
        (manner.places or manner.ids == "stable") and (manner.announces or manner.confirms)
    )
)
WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), max_size=3)
ARGUMENTS = st.dictionaries(st.text(max_size=2), st.integers() | WORDS, max_size=2)
ITEMS = st.lists(
    st.tuples(st.just("text"), WORDS) | st.tuples(st.just("call"), ARGUMENTS), max_size=4
)


def events_of(place, kind, content, manner):
    """Write one item as events."""
    ids = itertools.count()

    def name():
        if manner.ids == "none":
            return None
        return f"item_{place}" + (f"_{next(ids)}" if manner.ids == "changing" else "")

    def where(**more):
        return {"output_index": place if manner.places else None, "item_id": name(), **more}

    at = place if manner.places else None
    if kind == "text":
        whole = "".join(content)
        begun = message(item_id=name())
        deltas = [
            event("output_text.delta", **where(content_index=0), delta=each) for each in content
        ]
        sums = event("output_text.done", **where(content_index=0), text=whole)
        ended = message(whole, item_id=name())
    else:
        whole = json.dumps(content)
        names = {"call_id": f"call_{place}", "name": f"tool_{place}"}
        begun = call("", name(), **names)
        deltas = [
            event("function_call_arguments.delta", **where(), delta=whole[start : start + 5])
            for start in range(0, len(whole), 5)
        ]
        sums = event("function_call_arguments.done", **where(), arguments=whole)
        ended = call(whole, name(), **names)
    return [
        *([added(begun, at)] if manner.announces else []),
        *deltas,
        *([sums] if manner.sums_up else []),
        *([done(ended, at)] if manner.confirms else []),
    ]


def interleaved(streams, chooser):
    """Mix streams of events, each in its own order."""
    streams = [list(each) for each in streams if each]
    while streams:
        chosen = chooser.draw(st.integers(0, len(streams) - 1))
        yield streams[chosen].pop(0)
        streams = [each for each in streams if each]


def calls_of(answer):
    return sorted((each.id, each.name, each.arguments) for each in answer.tool_calls)


@settings(deadline=None, max_examples=150)
@given(ITEMS, MANNERS, st.booleans(), st.data())
def test_every_server_gives_the_same_answer(items, manner, mixed, data):
    streams = [events_of(place, *item, manner) for place, item in enumerate(items)]
    frames = [*(interleaved(streams, data) if mixed else itertools.chain(*streams)), completed()]
    answer = answer_of(decode(*frames))
    expected = [
        (f"call_{place}", f"tool_{place}", json.dumps(content))
        for place, (kind, content) in enumerate(items)
        if kind == "call"
    ]
    texts = ["".join(content) for kind, content in items if kind == "text"]

    assert calls_of(answer) == expected
    assert answer.incomplete_tool_calls == ()
    if not mixed:
        assert answer.text == "".join(texts)
    said = [item for item in answer.native()["output"] if item["type"] == "message"]
    found = ["".join(part["text"] for part in item["content"]) for item in said]
    assert sorted(filter(None, found)) == sorted(filter(None, texts))


@settings(deadline=None, max_examples=50)
@given(ITEMS, MANNERS, st.integers(0, 2000), st.sampled_from([b"", completed()]))
def test_call_that_is_cut_is_never_whole(items, manner, end, evidence):
    streams = [events_of(place, *item, manner) for place, item in enumerate(items)]
    body = b"".join(itertools.chain(*streams))
    frames = body[:end].rpartition(b"\n\n")
    answer = answer_of(decode(frames[0] + frames[1], evidence))
    whole = {
        f"call_{place}": json.dumps(content)
        for place, (kind, content) in enumerate(items)
        if kind == "call"
    }

    assert evidence or answer.tool_calls == ()
    for each in answer.tool_calls:
        # Of a call without any arguments nothing tells whether some were to come.
        assert each.arguments in ("{}", whole.get(each.id, each.arguments))
        each.parsed()
