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
    "form",
    [
        {},
        {"sned": "typing error"},
        {"end": "slowly"},
        {"every_ms": 5, "send": "no count"},
        {"wait_ms": "long"},
        {"b64": "***"},
        {"fill": {"unit": "x"}},
    ],
)
def test_what_is_not_a_step_is_refused(form):
    with pytest.raises(ValueError, match=r"not a|base64"):
        steps_of(form)


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
