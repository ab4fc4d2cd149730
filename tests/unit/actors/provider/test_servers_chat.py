"""The chat wire as well-known servers write it: each body's answer, however it is cut.

*Goal*: what is particular about a server changes nothing in the answer, and no cut makes one wrong.
*Method*: a golden body for each server, decoded and assembled whole, in pieces, and cut off.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from tests.unit.actors.provider.servers_golden import (
    CALLED,
    GOOGLE,
    PATHS,
    PROMPT_SAFE,
    SERVERS,
    THOUGHT,
    call,
    chunk,
    data,
)
from tidegate.actors.provider.dialects.body import BodyDecoder
from tidegate.actors.provider.dialects.chat import decode_json
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.attempts import Order, Target
from tidegate.protocol.deltas import Block
from tidegate.protocol.failures import FailureKind


ORDER = Order(target=Target("chat", base_url="http://any.test/v1"), body=b"{}")


@pytest.fixture(params=SERVERS)
def golden(request):
    return SERVERS[request.param]


@pytest.fixture(params=["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def body(request, golden):
    return b"".join(golden.frames).replace(b"\n", request.param.encode())


def batches_of(*pieces, content_type="text/event-stream"):
    decoder = BodyDecoder(DIALECTS["chat"], ORDER, content_type)
    return [*map(decoder.feed, pieces), decoder.eof()]


def assembled(batches):
    """Return the answer that the sink makes of batches, and how they failed."""
    assembly, usage, failure = Assembly(token=1), None, None
    for batch in batches:
        assembly.add(batch.deltas)
        assembly.finishes = batch.finishes or assembly.finishes
        usage = batch.usage or usage
        failure = batch.failure or failure
        if batch.details:
            assembly.add([Block(-1, batch.details)])
    choices = assembly.choices()
    [choice] = choices or (None,)
    answer = Answer(choices=choices, parts=assembly.parts(), usage=usage)
    return choice, answer, failure


def calls_of(choice):
    return tuple((each.id, each.name, each.arguments) for each in choice.tool_calls)


def check(golden, batches):
    choice, answer, failure = assembled(batches)

    assert failure is None
    assert (choice.text, choice.reasoning) == (golden.text, golden.reasoning)
    assert calls_of(choice) == golden.calls
    assert choice.incomplete_tool_calls == ()
    assert (choice.finish, answer.usage) == (golden.finish, golden.usage)
    return answer


def test_body_gives_its_answer(golden, body):
    answer = check(golden, batches_of(body))
    native = answer.native()
    ChatCompletion.model_validate(native)

    message = native["choices"][0]["message"]
    assert (message["content"] or "") == golden.text
    assert {name: message.get(name) for name in golden.native} == golden.native


def test_body_cut_anywhere_gives_the_same(golden, body):
    check(golden, batches_of(*[bytes([byte]) for byte in body]))
    for at in range(1, len(body)):
        check(golden, batches_of(body[:at], body[at:]))


def test_body_cut_off_anywhere_is_never_another_answer(golden, body):
    for at in range(len(body)):
        choice, _, failure = assembled(batches_of(body[:at]))
        if failure is None:
            assert (choice.text, choice.reasoning) == (golden.text, golden.reasoning)
            assert (calls_of(choice), choice.finish) == (golden.calls, golden.finish)
            continue
        assert failure.kind in (FailureKind.TRUNCATED, FailureKind.EMPTY)
        assert failure.retryable
        if choice is not None:
            assert golden.text.startswith(choice.text)
            assert golden.reasoning.startswith(choice.reasoning)
            assert choice.tool_calls == ()


def test_body_is_known_for_a_stream_whatever_it_is_called(golden, body):
    check(golden, batches_of(body, content_type="application/octet-stream"))


def native_of(*frames):
    return assembled(batches_of(b"".join(frames)))[1].native()


def test_what_azure_says_of_the_prompt_is_kept():
    assert native_of(*SERVERS["azure"].frames)["prompt_filter_results"] == PROMPT_SAFE


def test_what_openrouter_says_of_the_provider_is_kept():
    native = native_of(*SERVERS["openrouter"].frames)

    assert (native["provider"], native["usage"]["cost"]) == ("Anthropic", 0.002)


def test_what_llama_cpp_has_measured_is_kept():
    assert native_of(*SERVERS["llama.cpp"].frames)["timings"] == {"prompt_n": 9, "predicted_n": 4}


def test_what_xai_cites_is_kept():
    assert native_of(*SERVERS["xai"].frames)["citations"] == ["https://tides.test"]


def test_parts_of_the_reasoning_stay_apart_once_they_are_sealed():
    def part(text, **more):
        detail = {"type": "reasoning.text", "text": text, "index": 0, **more}
        return chunk({"reasoning": text, "reasoning_details": [detail]})

    native = native_of(
        part("a"), part("b", signature="s1"), part("c", signature="s2"), chunk({}, "stop")
    )

    parts = native["choices"][0]["message"]["reasoning_details"]
    assert [(each["text"], each["signature"]) for each in parts] == [("ab", "s1"), ("c", "s2")]


def test_parts_of_the_reasoning_in_other_words_are_kept_only_if_they_are_sealed():
    details = [
        {"type": "reasoning.summary", "summary": "other words"},
        {"type": "reasoning.encrypted", "data": "eHg="},
    ]
    native = native_of(chunk({"reasoning": "words", "reasoning_details": details}, "stop"))

    message = native["choices"][0]["message"]
    assert message["reasoning_details"] == details[1:]
    assert message["reasoning_content"] == "words"


@pytest.mark.parametrize(
    ("contents", "reasoning", "text"),
    [
        (["*<thought>Hm.", "*</thought>Yes."], "Hm.", "Yes."),
        (["*<think_x>Hm.", "</think_x>Yes."], "Hm.", "Yes."),
        (["*Hm.", "*<thought> is a word.", "Yes."], "Hm.<thought> is a word.", "Yes."),
        (["*<b>Hm.</b>", "Yes."], "<b>Hm.</b>", "Yes."),
        (["*<thought>", "*Hm.", "</thought>", "</thought>"], "Hm.", "</thought>"),
        (["*<thought>A", "</thought>b", "*<thought>C", "</thought>d"], "AC", "bd"),
        (["<thought>no mark</thought>"], "", "<thought>no mark</thought>"),
    ],
)
def test_thoughts_of_gemini_are_told_by_their_mark(contents, reasoning, text):
    frames = [
        chunk({"content": each.removeprefix("*"), "extra_content": each[:1] == "*" and THOUGHT})
        for each in contents
    ]
    choice, answer, _ = assembled(batches_of(b"".join([*frames, chunk({}, "stop")])))

    assert (choice.reasoning, choice.text) == (reasoning, text)
    assert "extra_content" not in answer.native()["choices"][0]["message"]


def test_document_of_gemini_has_its_thought_and_its_answer_in_one_text():
    message = {
        "role": "assistant",
        "content": "<thought>Hm.</thought>Yes.",
        "extra_content": {"google": {"thought": True, "thought_signature": "c2lnbmVk"}},
    }
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    choice, answer, _ = assembled([decode_json(data({"choices": choices})[6:])])

    assert (choice.reasoning, choice.text) == ("Hm.", "Yes.")
    assert answer.native()["choices"][0]["message"]["extra_content"] == GOOGLE


@pytest.mark.parametrize("blanks", [1, 63, 64, 65, 5000])
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", ""])
def test_empty_lines_of_deepseek_before_its_document_are_skipped(blanks, content_type):
    document = data({"choices": [{"message": {"content": "Ebb"}, "finish_reason": "stop"}]})[6:]
    for pieces in ([b"\n" * blanks + document], [*[b"\n"] * blanks, document]):
        choice, _, failure = assembled(batches_of(*pieces, content_type=content_type))

        assert failure is None
        assert choice.text == "Ebb"


def test_pieces_of_one_call_whose_name_is_repeated_stay_together():
    pieces = ("", '{"path":', '"a"}', "")
    frames = [chunk({"tool_calls": [call("read", each, index=0)]}) for each in pieces]
    choice, _, _ = assembled(batches_of(b"".join([*frames, chunk({}, "tool_calls")])))

    assert calls_of(choice) == (("call_1_0_0", "read", PATHS[0]),)


def test_call_without_an_id_stays_one_where_arguments_follow_that_begin_none():
    frames = [
        chunk({"tool_calls": [call("read", each, index=0)]}) for each in ('{"path":"a"}', " ")
    ]
    choice, _, _ = assembled(batches_of(b"".join([*frames, chunk({}, "tool_calls")])))

    assert calls_of(choice) == (("call_1_0_0", "read", PATHS[0] + " "),)


def test_usage_of_groq_counts_in_its_last_frame_too():
    frames = [
        chunk({"content": "a"}, "stop"),
        chunk({}, x_groq={"usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    ]

    assert assembled(batches_of(b"".join(frames)))[1].usage == Usage(
        input_tokens=1, output_tokens=2
    )


def test_calls_of_a_document_that_all_have_index_0_stay_apart():
    calls = [call("read", each, index=0, id=f"call_{at}") for at, each in enumerate(PATHS, 1)]
    choices = [{"message": {"tool_calls": calls}, "finish_reason": "stop"}]
    choice, _, _ = assembled([decode_json(data({"choices": choices})[6:])])

    assert calls_of(choice) == CALLED


KEYS = st.sampled_from(
    [
        *("content", "reasoning", "reasoning_details", "extra_content", "google", "thought"),
        *("tool_calls", "id", "index", "function", "name", "arguments", "type", "text", "summary"),
        *("signature", "data", "usage", "error", "prompt_tokens", "thought_signature"),
    ]
)
TEXTS = st.sampled_from(["<thought>", "</thought>", "null", "read", *PATHS, "hm", ""])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.dictionaries(KEYS, ANY, max_size=4)
FRAMES = st.builds(
    lambda delta, finish, around: chunk(delta, finish, **around),
    OBJECTS,
    st.sampled_from([None, None, "stop", "content_filter: SAFETY", "function_call_filter: X"]),
    st.fixed_dictionaries({}, optional={"x_groq": ANY, "timings": ANY, "usage": ANY}),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(FRAMES, max_size=5))
def test_any_values_in_those_places_end_in_evidence_or_a_failure(frames):
    batches = batches_of(b"".join(frames))
    choice, answer, failure = assembled(batches)

    assert any(batch.finishes for batch in batches) != (failure is not None)
    assert json.loads(json.dumps(answer.native()))["object"] == "chat.completion"
    for each in choice.tool_calls if choice else ():
        each.parsed()
    apart = assembled(batches_of(*frames))
    assert (apart[0], apart[2]) == (choice, failure)
