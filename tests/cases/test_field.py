"""What others have met in the field, one case for each report, compared field by field."""

import pytest

from tests.cases.changes import unnoticed
from tests.cases.outcome import compare
from tests.cases.procedures import play
from tests.cases.records import GATEWAY, cases


NOT_YET = {"RTY-09": "fallback chains", "SES-05": "a queue of turns"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases()])
def test_case(case, request):
    if case.id in NOT_YET:
        pytest.skip(f"not yet: it needs {NOT_YET[case.id]}")
    stage = "stage"
    if case.provider_wire == GATEWAY:
        stage = "served_stage"
    elif "events_decoded" in case.right_outcome:
        stage = "noted_stage"
    played = play(case, request.getfixturevalue(stage))

    compare(case.right_outcome, played)
    assert unnoticed(case.right_outcome, played) == []
    assert played.stage.unexpected == []
