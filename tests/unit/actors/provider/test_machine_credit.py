"""One attempt that reads as far as its credit goes."""

from tests.unit.actors.provider.test_machine import came, orders, play, told
from tidegate.actors.provider.facts import CreditCame, PauseReading, ResumeReading
from tidegate.protocol.deltas import Text, size_bytes


def test_reading_rests_when_the_deltas_reach_the_limit():
    size = size_bytes(Text("abc"))

    assert orders(came(Text("abc")), limit_bytes=size + 1) == []
    assert orders(came(Text("abc")), limit_bytes=size) == [PauseReading()]


def test_a_decoded_batch_is_sent_whole_whatever_the_limit():
    [deltas] = told(came(*[Text("abc")] * 9), limit_bytes=1)

    assert len(deltas.deltas) == 9


def test_what_is_decoded_while_resting_is_sent_and_rests_on():
    heard = told(came(Text("a")), came(Text("b")), limit_bytes=1)

    assert [each.seq for each in heard] == [0, 1]
    assert orders(came(Text("a")), came(Text("b")), limit_bytes=1) == [PauseReading()]


def test_credit_resumes_only_above_what_was_sent():
    size = size_bytes(Text("abc"))
    rest = came(Text("abc"), Text("abc"))

    assert orders(rest, CreditCame(2 * size), limit_bytes=size) == [PauseReading()]
    assert orders(rest, CreditCame(2 * size + 1), limit_bytes=size) == [
        PauseReading(),
        ResumeReading(),
    ]


def test_rest_that_a_credit_does_not_end_is_ended_by_the_next():
    size = size_bytes(Text("abc"))
    given = CreditCame(2 * size), CreditCame(2 * size + 1)

    assert orders(came(Text("abc"), Text("abc")), *given, limit_bytes=size) == [
        PauseReading(),
        ResumeReading(),
    ]


def test_credit_never_falls():
    state, effects = play(CreditCame(10), limit_bytes=100)

    assert state.limit_bytes == 100
    assert effects == []


def test_credit_without_a_rest_only_raises_the_limit():
    size = size_bytes(Text("abc"))

    assert orders(CreditCame(size + 1), came(Text("abc")), limit_bytes=size) == []


def test_evidence_needs_no_credit():
    assert orders(came(Text("abc"), finishes=("stop",)), limit_bytes=1) == []


def test_evidence_decoded_while_resting_ends_the_rest():
    assert orders(came(Text("a")), came(finishes=("stop",)), limit_bytes=1) == [
        PauseReading(),
        ResumeReading(),
    ]
