"""A runtime whose readers follow the structure of answers."""

import pytest

from tests.daemon.fronts.goldens import GOLDENS
from tests.daemon.fronts.playing import Following, play


@pytest.fixture(scope="package")
def golden(runtime):
    """Return all that a reader gets of a golden stream, which is played once."""
    played = {}

    def items_of(api, name):
        if (api, name) not in played:
            script, fields = GOLDENS[api][name]
            played[api, name] = play(runtime, api, [script], **fields)
        return played[api, name]

    return items_of


@pytest.fixture(scope="package")
def runtime():
    with Following() as runtime:
        yield runtime
