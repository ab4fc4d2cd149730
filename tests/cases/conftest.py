"""Two runtimes for all cases, one of which notes what goes over the wire; a stage for each."""

from contextlib import ExitStack

import pytest

import tidegate as tg
from tests.cases.served import ServedStage
from tests.cases.stage import PAYLOADS, Stage, endpoint
from tidegate.lab import Lab, chat, converse, messages, responses
from tidegate.testing.warm import warm


def warm_on_all_wires(runtime):
    """Have the worker load what each wire needs, so that no case waits for it."""
    said = {"chat": chat, "responses": responses, "messages": messages, "converse": converse}
    for wire, form in said.items():
        with Lab([form.answer("warm")]) as lab:
            runtime.run(tg.Request(endpoint(wire, lab, "warm"), PAYLOADS[wire]))


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm_on_all_wires(runtime)
        yield runtime


@pytest.fixture(scope="module")
def capturing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    with tg.Runtime(workers=1, capture=folder) as runtime:
        warm(runtime, 1)
        yield runtime, folder


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def stage(runtime, closing, request, caplog):
    return Stage(runtime, None, closing, request.node.name, lambda: caplog.text)


@pytest.fixture
def noted_stage(capturing, closing, request, caplog):
    runtime, folder = capturing
    return Stage(runtime, folder, closing, request.node.name, lambda: caplog.text)


@pytest.fixture
def served_stage(closing, tmp_path):
    return ServedStage(closing, tmp_path)
