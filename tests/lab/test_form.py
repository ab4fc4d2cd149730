"""Scripts written as JSON."""

import pytest

from tidegate.lab import Answer, End, HttpDate, answers_from, scripts_from
from tidegate.lab.script import Pace, Send, Wait, Zip


def steps_of(*steps):
    (answer,) = answers_from([{"status": 200, "headers": {}, "steps": list(steps)}])
    return answer.steps


@pytest.mark.parametrize(
    ("form", "step"),
    [
        ({"send": "é\n"}, Send(b"\xc3\xa9\n")),
        ({"b64": "/wA="}, Send(b"\xff\x00")),
        ({"fill": {"before": "<", "unit": "ab", "times": 3, "after": ">"}}, Send(b"<ababab>")),
        ({"fill": {"unit": "x", "times": 2}}, Send(b"xx")),
        ({"gzip_flush": "data"}, Zip(b"data")),
        ({"wait_ms": 60}, Wait(0.06)),
        ({"every_ms": 150, "send": ": ping\n\n", "times": 10}, Pace((b": ping\n\n",), 0.15, 10)),
        *(({"end": end.value}, end) for end in End),
    ],
)
def test_each_kind_of_step(form, step):
    assert steps_of(form) == (step,)


@pytest.mark.parametrize(
    ("form", "given"),
    [
        ({}, "nothing"),
        ({"send": "a", "wait_ms": 5, "end": "cut"}, "send and wait_ms and end"),
        ({"send": "a", "b64": "/wA="}, "send and b64"),
        ({"wait_ms": 5, "every_ms": 5}, "wait_ms and every_ms"),
        ({"fill": {"unit": "x", "times": 2}, "times": 2}, "fill and times"),
        ({"send": "no rhythm", "times": 2}, "send and times"),
        ({"every_ms": 5, "send": "no count"}, "send and every_ms"),
        ({"every_ms": 5}, "every_ms"),
        ({"every_ms": 5, "send": "a", "times": 2, "end": "cut"}, "send and every_ms and times and"),
    ],
)
def test_fields_that_are_no_step_are_refused_with_what_one_is(form, given):
    said = f"a step with {given}.*: give one of send, .* or every_ms with send and times"
    with pytest.raises(ValueError, match=rf"{said} - at `\$\[0\]\.steps\[1\]`"):
        steps_of({"send": "one"}, form)


@pytest.mark.parametrize(
    ("form", "match"),
    [
        ({"sned": "typing error"}, "sned"),
        ({"end": "slowly"}, "slowly"),
        ({"wait_ms": "long"}, r"float.*wait_ms"),
        ({"b64": "***"}, r"base64.*b64"),
        ({"fill": {"unit": "x"}}, r"times.*fill"),
        ({"send": None}, "a step with nothing"),
    ],
)
def test_value_that_does_not_fit_is_refused_with_its_place(form, match):
    with pytest.raises(ValueError, match=f"not a script.*{match}"):
        steps_of(form)


@pytest.mark.parametrize(
    ("script", "place"),
    [
        (b'{"script": [{"steps": [{"send": "a", "end": "cut"}]}]}', r"\$\.script\[0\]\.steps\[0\]"),
        (
            b'{"id": "A"}\n{"id": "B", "input": {"script": [{"steps": [{}, {"wait_ms": 5}]}]}}',
            r"\$\[1\]\.input\.script\[0\]\.steps\[0\]",
        ),
    ],
)
def test_step_of_a_file_that_is_none_is_refused_with_its_place(script, place):
    with pytest.raises(ValueError, match=f"not a script: a step with .* at `{place}`"):
        scripts_from(script)


def test_fields_of_an_answer():
    script = [
        {
            "status": 503,
            "headers": {"retry-after": {"http_date_in_ms": 3000}, "x": "y"},
            "steps": [{"end": "keepalive"}],
            "delay_ms": 250,
            "headers_with_first_frame": True,
            "keepalive_close_after_ms": 40,
            "repeat": True,
        }
    ]

    assert answers_from(script) == [
        Answer(
            [End.KEEPALIVE],
            status=503,
            headers={"retry-after": HttpDate(3.0), "x": "y"},
            delay_s=0.25,
            headers_with_first_frame=True,
            keepalive_close_after_s=0.04,
            repeat=True,
        )
    ]


def test_file_of_one_object():
    text = b'{\n "script": [\n {"status": 204, "headers": {}, "steps": []}\n ]\n}\n'

    assert scripts_from(text) == {"": [Answer(status=204, headers={})]}


def test_file_of_cases():
    text = b"""{"id": "A", "source": "x", "input": {"script": [{"status": 201}]}}
{"id": "B", "input": {"upstream": [{"status": 202}]}}
{"id": "C", "input": {"event_calls": []}}
"""

    scripts = scripts_from(text)

    assert {name: answers[0].status for name, answers in scripts.items()} == {"A": 201, "B": 202}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "no script"),
        (b"{", "not a script"),
        (b'{"script": 3}', "not a script"),
        (b'{"other": 3}', "no script"),
        (b'{"id": "A", "script": [{}]}\n{"id": "A", "script": [{}]}', "'A' is there twice"),
    ],
)
def test_file_that_is_no_script_is_refused(text, match):
    with pytest.raises(ValueError, match=match):
        scripts_from(text)
