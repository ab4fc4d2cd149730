"""The native form of a Responses answer is what the openai SDK takes for a whole response."""

import pytest
from openai.types.responses import Response

from tidegate.protocol.answers import Answer, Part, Usage
from tidegate.protocol.deltas import ENVELOPE


USAGE = Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8, reasoning_tokens=1)
FIGURES = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
    "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 13,
}


def response(**envelope):
    head = Part(index=ENVELOPE, data=envelope)
    answer = Answer(wire="responses", text="hello", finish="stop", usage=USAGE, parts=(head,))
    return Response.model_validate(answer.native(), strict=True)


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"input_tokens": 9, "output_tokens": 4},
        {"input_tokens_details": {"cached_tokens": 8}, "output_tokens_details": {}},
        {"input_tokens_details": None, "total_tokens": None},
    ],
)
def test_figures_that_the_wire_leaves_out_are_filled_in(told):
    assert response(usage=told).usage.model_dump(exclude_none=True) == FIGURES


def test_figures_of_the_wire_stand():
    details = {"cached_tokens": 5, "cache_write_tokens": 2, "audio_tokens": 1}
    told = {"total_tokens": 14, "input_tokens_details": details, "cost": 0.1}

    assert response(usage=told).usage.model_dump(exclude_none=True) == FIGURES | told
