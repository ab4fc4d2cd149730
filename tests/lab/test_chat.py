"""Chunks of the chat wire."""

import json

import pytest

from tidegate.lab import Answer, End, chat, wait


def chunk_of(step):
    name, _, data = step.data.decode().partition(": ")
    assert name == "data"
    return json.loads(data)


def choice_of(step):
    (choice,) = chunk_of(step)["choices"]
    return choice


@pytest.mark.parametrize(
    ("step", "delta"),
    [
        (chat.role(), {"role": "assistant", "content": ""}),
        (chat.text("hé"), {"content": "hé"}),
        (chat.reasoning("why"), {"reasoning_content": "why"}),
        (chat.reasoning("why", field="reasoning"), {"reasoning": "why"}),
        (chat.refusal("no"), {"refusal": "no"}),
        (chat.delta({"content": None}), {"content": None}),
        (
            chat.tool(1, id="c1", name="ping", arguments=""),
            {
                "tool_calls": [
                    {
                        "index": 1,
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "ping", "arguments": ""},
                    }
                ]
            },
        ),
        (
            chat.tool(None, arguments="{}"),
            {"tool_calls": [{"function": {"arguments": "{}"}}]},
        ),
    ],
)
def test_delta(step, delta):
    assert choice_of(step) == {"index": 0, "delta": delta, "finish_reason": None}


def test_finish_of_a_later_choice():
    assert choice_of(chat.finish("length", choice=2)) == {
        "index": 2,
        "delta": {},
        "finish_reason": "length",
    }


def test_usage_stands_in_a_chunk_without_choices():
    chunk = chunk_of(chat.usage(3, 4, prompt_tokens_details={"cached_tokens": 1}))

    assert chunk["choices"] == []
    assert chunk["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 1},
    }


def test_done_and_error():
    assert chat.done().data == b"data: [DONE]\n\n"
    assert chunk_of(chat.error("bad", code="c")) == {"error": {"message": "bad", "code": "c"}}
    assert chat.error_answer(429, "slow", type="t") == Answer.json(
        {"error": {"message": "slow", "type": "t"}}, 429
    )


def test_complete_answer():
    assert chat.answer("a", "b", reason="length", steps=[wait(1)]).steps == (
        chat.role(),
        chat.text("a"),
        chat.text("b"),
        wait(1),
        chat.finish("length"),
        chat.done(),
        End.KEEPALIVE,
    )


def test_answer_that_is_not_streamed():
    body = chat.completion("hi", tokens=(1, 2))

    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop",
        }
    ]
    assert body["usage"]["total_tokens"] == 3
