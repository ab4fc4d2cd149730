"""What the caller of a case does, where that is more than to call and to read."""

import threading
import time

import tidegate as tg
from tests.cases import cancelling, processes, served
from tests.cases.records import GATEWAY
from tests.cases.stage import PAYLOADS, Play, seen


CALLS = {
    (): 1,
    ("call once", "call once more"): 2,
    ("four separate calls, max_attempts 1",): 4,
}
NOTES = ("", "Chat frames for brevity; the same must hold on all four wires.")


def play(case, stage):
    """Do what a case says, and return what was seen."""
    if case.provider_wire == GATEWAY:
        return served.play(case, stage)
    if case.id in PROCEDURES:
        return PROCEDURES[case.id](case, stage)
    given = case.given
    assert given.notes in NOTES
    assert not given.procedure
    lab = stage.lab_for(case)
    count = CALLS[tuple(given.client)]
    return Play(stage, case, lab, [stage.call(stage.request(case, lab)) for _ in range(count)])


def _two_limits(case, stage):
    """HNG-07: as it is, and with a limit that is too short."""
    assert case.given.notes == (
        "headers are sent only together with the first frame. Variant B: first_byte_timeout_ms 600."
    )
    variants = {}
    for name, changed in {"A": {}, "B": {"first_event_timeout_s": 0.6}}.items():
        lab = stage.lab_for(case)
        call = stage.call(stage.request(case, lab, **changed))
        variants[name] = Play(stage, case, lab, [call])
    return Play(stage, case, None, [], variants=variants)


def _reading_tool(case, stage):
    """HNG-09: somebody consumes the arguments while they come."""
    lab = stage.lab_for(case)
    began_s = time.monotonic()
    turn = stage.runtime.start(stage.request(case, lab))
    facts = {"taken_before": ""}

    def consume():
        for event in turn:
            if isinstance(event, tg.ToolCallDelta):
                facts["taken_before"] += event.arguments
            elif isinstance(event, tg.TurnFailed):
                facts["released_by"] = event.error

    consumer = threading.Thread(target=consume)
    consumer.start()
    events = [*turn]
    consumer.join(30)
    assert not consumer.is_alive()
    return Play(stage, case, lab, [seen(events, began_s, turn.result)], facts)


def _history(case, stage):
    """SES-01: the second request is made of what the first answer says of itself."""
    lab = stage.lab_for(case)
    first = stage.call(stage.request(case, lab))
    asked = PAYLOADS["messages"]["messages"]
    said = {"role": "assistant", "content": first.answer.native()["content"]}
    payload = PAYLOADS["messages"] | {
        "messages": [*asked, said, {"role": "user", "content": "Go on"}]
    }
    second = stage.call(stage.request(case, lab, payload=payload))
    return Play(stage, case, lab, [first, second])


PROCEDURES = {
    "HNG-07": _two_limits,
    "HNG-09": _reading_tool,
    "CAN-05": cancelling.many_from_another_task,
    "CAN-07": cancelling.wrapped_in_generators,
    "PRC-02": processes.several_loops,
    "PRC-04": processes.killed_host,
    "BED-07": processes.limits_of_bedrock,
    "SES-01": _history,
    "SES-03": cancelling.the_turn_before,
}
