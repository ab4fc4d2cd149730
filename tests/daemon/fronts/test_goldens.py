"""What the official SDKs make of our streams is what the provider's answer is.

*Goal*: a client cannot tell the daemon from the provider, and no strict client stumbles.
*Method*: recorded streams of each wire, played by the lab to a real runtime; everything that its
readers get is rendered, judged frame by frame by the SDKs' own types, and joined by the SDKs.
"""

import pytest

from tests.daemon.fronts import sdks
from tests.daemon.fronts.goldens import GOLDENS, document
from tests.daemon.fronts.playing import data_of, frames_of, play, render
from tidegate.daemon.fronts import body_of


ALL = [(api, name) for api, goldens in GOLDENS.items() for name in goldens]
_OF_THE_SDK = {"parsed", "parsed_arguments"}


def bare(value):
    """Return JSON without what is null and what an SDK adds by itself."""
    if isinstance(value, list):
        return [bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {
        name: bare(each)
        for name, each in value.items()
        if each is not None and name not in _OF_THE_SDK
    }
    if isinstance(found.get("function"), dict):
        found.pop("index", None)  # a call's in a list of calls
    return found


def expected(api, native, fields):
    """Return what is to come of an answer by streaming."""
    if api == "chat" and "stream_options" not in fields:
        native.pop("usage", None)
    native.pop("citations", None)  # the SDK looks for such things in the first chunk only
    return bare(native)


@pytest.mark.parametrize(("api", "name"), ALL)
def test_client_makes_the_same_answer_of_it(golden, api, name):
    fields = GOLDENS[api][name][1]
    items = golden(api, name)

    body = render(api, items, **fields)

    sdks.judge(api, body)
    native = expected(api, items[-1].answer.native(), fields)
    got = bare(sdks.joined(api, body, **fields))
    if api == "responses":
        # What a client is told first stands, and servers may change it; it is told more, too.
        _same_names(got, native)
        native = got | native
    native["created"] = got.get("created", native.get("created"))
    assert got == {name: each for name, each in native.items() if name in got or each}


def _same_names(got, native):
    for ours, theirs in zip(got["output"], native["output"], strict=True):
        theirs["id"] = ours["id"]
    native["model"] = native["model"] or got["model"]


@pytest.mark.parametrize("api", GOLDENS)
def test_answer_that_was_not_streamed_upstream_is_the_same(runtime, api):
    items = play(runtime, api, [document(api)], plain=True)

    body = render(api, items)

    sdks.judge(api, body)
    got = bare(sdks.joined(api, body))
    native = expected(api, items[-1].answer.native(), {})
    assert got == got | native


@pytest.mark.parametrize(("api", "name"), ALL)
def test_whole_body_is_valid_for_strict_clients(golden, api, name):
    terminal = golden(api, name)[-1]

    body = body_of(api, terminal, model="asked")

    sdks.WHOLE[api].model_validate(body, strict=True)
    native = terminal.answer.native()
    assert {each: body[each] for each in ("id", "model") if native[each]} == {
        each: native[each] for each in ("id", "model") if native[each]
    }


@pytest.mark.parametrize(("api", "name"), ALL)
def test_no_golden_has_a_line_that_is_no_field(golden, api, name):
    body = render(api, golden(api, name))

    fields = {line.partition(":")[0] for line in body.decode().splitlines() if line}
    assert fields <= {"event", "data"}


@pytest.mark.parametrize(("api", "name"), [each for each in ALL if each[0] != "chat"])
def test_name_of_each_event_is_its_type(golden, api, name):
    for named, data in frames_of(render(api, golden(api, name))):
        assert named == data["type"]


@pytest.mark.parametrize("name", GOLDENS["responses"])
def test_events_of_a_response_are_numbered(golden, name):
    events = data_of(render("responses", golden("responses", name)))

    assert [each["sequence_number"] for each in events] == list(range(len(events)))


@pytest.mark.parametrize("name", GOLDENS["responses"])
def test_items_of_a_response_are_told_as_they_were_announced(golden, name):
    events = data_of(render("responses", golden("responses", name)))
    added = [each for each in events if each["type"] == "response.output_item.added"]
    done = [each for each in events if each["type"] == "response.output_item.done"]

    assert [each["output_index"] for each in added] == list(range(len(added)))
    names = {each["output_index"]: each["item"]["id"] for each in added}
    assert {each["output_index"]: each["item"]["id"] for each in done} == names
    final = events[-1]["response"]["output"]
    assert sorted(names.values()) == sorted(each["id"] for each in final)
