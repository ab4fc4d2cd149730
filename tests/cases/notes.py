"""What the notes of an outcome add to it: further plays of the same case, changed a little."""

import dataclasses
import json

import tidegate as tg
from tidegate.lab import HttpDate, answers_from


def _repeated_name(play):
    """The same whole name with the same id is a repetition."""
    script = json.loads(json.dumps(play.case.given.script))
    first, second = (step["send"] for step in script[0]["steps"][:2])
    script[0]["steps"][0]["send"] = first.replace('"get_"', '"get_weather"')
    script[0]["steps"][1]["send"] = second.replace('"name":"weather"', '"name":"get_weather"')
    stage = play.stage
    call = stage.call(stage.request(play.case, stage.lab(answers_from(script))))
    assert [each.name for each in call.answer.tool_calls] == ["get_weather"]


def _arguments_are_text(play):
    [call] = play.calls
    [choice] = call.answer.native()["choices"]
    texts = [each["function"]["arguments"] for each in choice["message"]["tool_calls"]]
    assert [json.loads(text) for text in texts] == [{"x": 1, "y": [2, 3]}, {}]


def _without_a_retry(play):
    stage = play.stage
    call = stage.call(stage.request(play.case, stage.lab_for(play.case), retries=0))
    failure = call.failure
    assert (failure.kind, failure.retryable, failure.status) == ("server_error", True, 502)
    assert (call.answer.text, call.answer.finish) == ("", None)


def _other_dates(play):
    """A date that is over asks for no wait, and what is none asks for nothing."""
    limited, fine = answers_from(play.case.given.script)
    for value, delay_s in [(HttpDate(-5.0), 0.0), ("soon", 0.25)]:
        answer = dataclasses.replace(limited, headers={**limited.headers, "retry-after": value})
        stage = play.stage
        lab = stage.lab([answer, fine])
        call = stage.call(stage.request(play.case, lab, backoff_s=(0.25,)))
        [wait] = [event for event in call.events if isinstance(event, tg.RetryScheduled)]
        assert (wait.delay_s, call.answer.text) == (delay_s, "fine")


NOTES = {
    "The offered tools list deliberately holds the first piece as a tool of its own. An identical "
    "full name repeated with the same id counts once; a different piece before any arguments is "
    "appended.": _repeated_name,
    "Arguments leave the runtime as a JSON string on the OpenAI-compatible side.": (
        _arguments_are_text
    ),
    "With max_attempts=1: error kind server_error, retryable, status 502, text empty, finish "
    "none.": _without_a_retry,
    "HTTP dates have whole seconds. A date in the past means retry at once; an unparsable value "
    "means normal backoff.": _other_dates,
}
