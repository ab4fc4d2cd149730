"""Bodies of the chat wire as well-known servers write them, and what each of them says."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegate.protocol.answers import Usage


class Golden(NamedTuple):
    """One body, and the answer that it is."""

    frames: list[bytes]
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str = "stop"
    usage: Usage | None = None
    native: Mapping[str, Any] = MappingProxyType({})  # what is in the native message beside those


def data(payload):
    return b"data: %b\n\n" % json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def chunk(delta=None, finish=None, *, choice=(), **more):
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish, **dict(choice)}]
    return data({"id": "c1", "object": "chat.completion.chunk", "choices": choices, **more})


def without_choices(**more):
    return data({"id": "c1", "object": "chat.completion.chunk", "choices": [], **more})


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


DONE = b"data: [DONE]\n\n"
ROLE = {"role": "assistant", "content": ""}
COUNTS = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
USAGE = Usage(input_tokens=9, output_tokens=4)
SAFE = {"hate": {"filtered": False, "severity": "safe"}}
PROMPT_SAFE = [{"prompt_index": 0, "content_filter_results": SAFE}]
GOOGLE = {"google": {"thought_signature": "c2lnbmVk"}}
THOUGHT = {"google": {"thought": True}}
# The sink names what nobody has named.
UNNAMED = (("call_1_0_0", "read", '{"path":"a"}'), ("call_1_0_1", "read", '{"path":"b"}'))
CALLED = (("call_1", "read", '{"path":"a"}'), ("call_2", "read", '{"path":"b"}'))
PATHS = ('{"path":"a"}', '{"path":"b"}')

SERVERS = {
    "azure": Golden(
        [
            data(
                {
                    "id": "",
                    "model": "",
                    "created": 0,
                    "object": "",
                    "choices": [],
                    "prompt_filter_results": PROMPT_SAFE,
                }
            ),
            chunk(ROLE, choice={"content_filter_results": {}}, system_fingerprint="fp_1"),
            chunk({"content": "Ebb"}, choice={"content_filter_results": SAFE}),
            # The asynchronous filter reports on what it has read, in frames without a delta.
            data(
                {
                    "id": "",
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": None,
                            "content_filter_results": SAFE,
                            "content_filter_offsets": {"start_offset": 0, "end_offset": 3},
                        }
                    ],
                }
            ),
            chunk({"content": " tide"}, choice={"content_filter_results": SAFE}),
            chunk({}, "stop", choice={"content_filter_results": {}}),
            without_choices(usage=COUNTS),
            DONE,
        ],
        text="Ebb tide",
        usage=USAGE,
    ),
    "openrouter": Golden(
        [
            b": OPENROUTER PROCESSING\n\n",
            b": OPENROUTER PROCESSING\n\n",
            chunk(
                {
                    **ROLE,
                    "reasoning": "The moon",
                    "reasoning_details": [
                        {
                            "type": "reasoning.text",
                            "text": "The moon",
                            "format": "anthropic-claude-v1",
                            "index": 0,
                        }
                    ],
                },
                provider="Anthropic",
            ),
            chunk(
                {
                    "content": "",
                    "reasoning": " pulls.",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": " pulls.", "index": 0}
                    ],
                },
                provider="Anthropic",
            ),
            chunk(
                {
                    "content": "",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "", "signature": "c2ln", "index": 0}
                    ],
                },
                provider="Anthropic",
            ),
            b": OPENROUTER PROCESSING\n\n",
            chunk({"content": "Gravity."}, provider="Anthropic"),
            chunk({"content": ""}, "stop", choice={"native_finish_reason": "end_turn"}),
            chunk({"content": ""}, None, usage={**COUNTS, "cost": 0.002}),
            DONE,
        ],
        text="Gravity.",
        reasoning="The moon pulls.",
        usage=USAGE,
        native={
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "The moon pulls.",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                    "signature": "c2ln",
                }
            ]
        },
    ),
    "openrouter, sealed": Golden(
        [
            chunk(
                {
                    **ROLE,
                    "reasoning": "Look.",
                    "reasoning_details": [
                        {"type": "reasoning.summary", "summary": "Look.", "index": 0},
                        {"type": "reasoning.encrypted", "data": "eHg=", "id": "rs_1", "index": 0},
                    ],
                }
            ),
            chunk({"tool_calls": [call("read", PATHS[0], index=0, id="call_1")]}),
            chunk({"tool_calls": [call("read", PATHS[1], index=1, id="call_2")]}),
            chunk({}, "tool_calls", usage=COUNTS),
            DONE,
        ],
        reasoning="Look.",
        calls=CALLED,
        finish="tool_calls",
        usage=USAGE,
        native={
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "Look.", "index": 0},
                {"type": "reasoning.encrypted", "data": "eHg=", "id": "rs_1", "index": 0},
            ]
        },
    ),
    "groq": Golden(
        [
            chunk(ROLE, x_groq={"id": "req_1", "seed": 5}),
            chunk({"reasoning": "Twice a day."}),
            chunk({"content": "Twice."}),
            chunk({}, "stop", x_groq={"id": "req_1", "usage": {"queue_time": 0.01, **COUNTS}}),
            DONE,
        ],
        text="Twice.",
        reasoning="Twice a day.",
        usage=USAGE,
    ),
    "mistral": Golden(
        [
            chunk({"role": "assistant", "content": [{"type": "thinking", "thinking": []}]}),
            chunk(
                {
                    "content": [
                        {
                            "type": "thinking",
                            "thinking": [{"type": "text", "text": "Hm."}],
                            "closed": True,
                        }
                    ]
                }
            ),
            chunk({"content": [{"type": "text", "text": "High"}]}),
            chunk({"content": " water"}),
            chunk({"content": ""}, "model_length", usage=COUNTS),
            DONE,
        ],
        text="High water",
        reasoning="Hm.",
        finish="length",
        usage=USAGE,
    ),
    "mistral, calls without ids": Golden(
        [
            chunk(
                {
                    "content": "",
                    "tool_calls": [
                        {"id": "null", "function": {"name": "read", "arguments": each}}
                        for each in PATHS
                    ],
                },
                "tool_calls",
                usage=COUNTS,
            ),
            DONE,
        ],
        calls=UNNAMED,
        finish="tool_calls",
        usage=USAGE,
    ),
    "deepseek": Golden(
        [
            *[b"\n"] * 70,
            b": keep-alive\n\n" * 3,
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
            chunk({"content": None, "reasoning_content": "Neap or"}),
            chunk({"content": None, "reasoning_content": " spring?"}),
            chunk({"content": "Neap.", "reasoning_content": None}),
            chunk(
                {"content": "", "reasoning_content": None},
                "stop",
                usage={
                    **COUNTS,
                    "prompt_cache_hit_tokens": 8,
                    "prompt_cache_miss_tokens": 1,
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            ),
            DONE,
        ],
        text="Neap.",
        reasoning="Neap or spring?",
        usage=Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8, reasoning_tokens=3),
    ),
    "gemini": Golden(
        [
            chunk({"role": "assistant", "content": "<thought>Two ", "extra_content": THOUGHT}),
            chunk({"role": "assistant", "content": "bulges.", "extra_content": THOUGHT}),
            chunk({"role": "assistant", "content": "</thought>Twice "}, usage=COUNTS),
            chunk({"role": "assistant", "content": "a day."}),
            # There is no [DONE] behind it.
            chunk({"role": "assistant", "extra_content": GOOGLE}, "stop", usage=COUNTS),
        ],
        text="Twice a day.",
        reasoning="Two bulges.",
        usage=USAGE,
        native={"extra_content": GOOGLE},
    ),
    "gemini, calls": Golden(
        [
            chunk({"tool_calls": [call("read", PATHS[0], id="call_1", extra_content=GOOGLE)]}),
            chunk({"tool_calls": [call("read", PATHS[1], id="call_2")]}),
            chunk({"role": "assistant"}, "stop", usage=COUNTS),
            DONE,
        ],
        calls=CALLED,
        finish="tool_calls",
        usage=USAGE,
        native={
            "tool_calls": [
                call("read", PATHS[0], id="call_1", extra_content=GOOGLE),
                call("read", PATHS[1], id="call_2"),
            ]
        },
    ),
    "vllm": Golden(
        [
            chunk(ROLE, choice={"logprobs": None}, usage={**COUNTS, "completion_tokens": 0}),
            chunk({"reasoning": "Hm."}, usage={**COUNTS, "completion_tokens": 2}),
            chunk({"reasoning_content": " Yes."}, usage={**COUNTS, "completion_tokens": 3}),
            chunk({"content": "Yes."}, usage=COUNTS),
            chunk({"content": ""}, "stop", choice={"stop_reason": None}, usage=COUNTS),
            without_choices(usage={**COUNTS, "prompt_tokens_details": None}),
            DONE,
        ],
        text="Yes.",
        reasoning="Hm. Yes.",
        usage=USAGE,
    ),
    "ollama": Golden(
        [
            chunk({"role": "assistant", "content": "", "reasoning": "Both."}),
            chunk({**ROLE, "tool_calls": [call("read", PATHS[0], index=0, id="call_1")]}),
            chunk({**ROLE, "tool_calls": [call("read", PATHS[1], index=0, id="call_2")]}),
            chunk(ROLE, "tool_calls", system_fingerprint="fp_ollama"),
            without_choices(usage=COUNTS, system_fingerprint="fp_ollama"),
            DONE,
        ],
        reasoning="Both.",
        calls=CALLED,
        finish="tool_calls",
        usage=USAGE,
    ),
    "ollama, calls without ids": Golden(
        [
            chunk({**ROLE, "tool_calls": [call("read", PATHS[0], index=0, id="")]}),
            chunk({**ROLE, "tool_calls": [call("read", PATHS[1], index=0, id="")]}),
            chunk(ROLE, "stop"),
            DONE,
        ],
        calls=UNNAMED,
        finish="tool_calls",
    ),
    "llama.cpp": Golden(
        [
            chunk({"role": "assistant", "content": None}),
            chunk({"reasoning_content": "Hm."}),
            chunk({"tool_calls": [call("read", "{", index=0, id="call_1")]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"path":"a"}'}}]}),
            chunk({"tool_calls": [call("read", PATHS[1], index=1, id="call_2")]}),
            chunk({}, "tool_calls"),
            without_choices(usage=COUNTS, timings={"prompt_n": 9, "predicted_n": 4}),
            DONE,
        ],
        reasoning="Hm.",
        calls=CALLED,
        finish="tool_calls",
        usage=USAGE,
    ),
    "lm studio": Golden(
        [
            chunk({"role": "assistant", "content": "Low"}, choice={"logprobs": None}),
            chunk({"content": " water"}),
            chunk({}, "stop", system_fingerprint="some-model", stats={"stop_reason": "eosFound"}),
            without_choices(usage=COUNTS),
            DONE,
        ],
        text="Low water",
        usage=USAGE,
    ),
    "together": Golden(
        [
            chunk(
                {"role": "assistant", "content": "Slack", "token_id": 1, "tool_calls": []},
                choice={"text": "Slack", "seed": None, "logprobs": None},
                usage=None,
            ),
            chunk(
                {"role": "assistant", "content": " water", "token_id": 2},
                "eos",
                choice={"text": " water", "seed": 7},
                usage=COUNTS,
            ),
            DONE,
        ],
        text="Slack water",
        usage=USAGE,
    ),
    "fireworks": Golden(
        [
            chunk({"role": "assistant"}),
            chunk({"reasoning_content": "Hm."}),
            chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "read"}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": PATHS[0]}}]}),
            chunk({"tool_calls": [{"index": 1, "id": "call_2", "function": {"name": "read"}}]}),
            chunk({"tool_calls": [{"index": 1, "function": {"arguments": PATHS[1]}}]}),
            chunk({}, "tool_calls", usage=COUNTS),
            DONE,
        ],
        reasoning="Hm.",
        calls=CALLED,
        finish="tool_calls",
        usage=USAGE,
    ),
    "xai": Golden(
        [
            chunk({"role": "assistant", "reasoning_content": "Thinking"}, usage=None),
            chunk({"reasoning_content": "..."}),
            chunk({"content": "Spring tide."}),
            chunk(
                {"content": ""},
                "stop",
                usage={
                    **COUNTS,
                    "prompt_tokens_details": {"text_tokens": 9, "cached_tokens": 2},
                    "completion_tokens_details": {"reasoning_tokens": 6},
                    "num_sources_used": 1,
                },
                citations=["https://tides.test"],
            ),
            DONE,
        ],
        text="Spring tide.",
        reasoning="Thinking...",
        usage=Usage(input_tokens=9, output_tokens=4, cached_input_tokens=2, reasoning_tokens=6),
    ),
}
