"""Whether a failed attempt is followed by another, row by row."""

import pytest

from tidegate.actors.supervisor.orders import Memory
from tidegate.actors.supervisor.retry import Asked, GiveUp, Retry, after_failure, is_transient
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.protocol.sink import Snapshot


LOST = Failure(kind=FailureKind.CONNECTION_LOST, retryable=True)
TRUNCATED = Failure(kind=FailureKind.TRUNCATED)
REFUSED = Failure(kind=FailureKind.BAD_REQUEST, status=422)
NOTHING = Snapshot()
UNTAKEN = Snapshot(text_chars=5, sent_any=True, life=True)
WHITE = Snapshot(text_chars=1, sent_any=True, taken_any=True, life=True)
TEXT = Snapshot(
    text_chars=5, sent_any=True, taken_any=True, visible_taken=True, words_taken=True, life=True
)
WORDS = Snapshot(sent_any=True, taken_any=True, words_taken=True, life=True)
TOOL = Snapshot(sent_any=True, tools_in_flight=("write_file",), life=True)
TEXT_AND_TOOL = Snapshot(
    text_chars=5,
    sent_any=True,
    taken_any=True,
    visible_taken=True,
    words_taken=True,
    tools_in_flight=("",),
    life=True,
)


def resolved(**fields):
    request = Request(Endpoint.chat("http://host"), {})
    return Policy(**fields).resolved(request, environ={}).values()


def decide(failure=TRUNCATED, snapshot=NOTHING, *, used=1, asked=None, policy=None, **facts):
    return after_failure(
        failure, snapshot, policy or resolved(), used=used, asked=asked or Asked(), **facts
    )


def kinds(decision):
    return [kind for kind, _ in decision.notices]


TRANSIENT = [
    LOST,
    TRUNCATED,
    Failure(kind=FailureKind.EMPTY),
    Failure(kind=FailureKind.STALLED, reason="idle"),
    Failure(kind=FailureKind.OVERLOADED, status=529),
    Failure(kind=FailureKind.RATE_LIMITED, status=429),
    Failure(kind=FailureKind.WORKER_LOST),
    Failure(kind=FailureKind.MALFORMED, retryable=True),
    Failure(kind=FailureKind.MALFORMED_TOOL_CALL, retryable=True),
    Failure(kind=FailureKind.SERVER_ERROR),
    Failure(kind=FailureKind.SERVER_ERROR, status=200),
    *(
        Failure(kind=FailureKind.SERVER_ERROR, status=status)
        for status in (408, 409, 500, 502, 503, 504, 520, 524, 529)
    ),
]
FINAL = [
    *(
        Failure(kind=kind)
        for kind in (
            FailureKind.QUOTA_EXHAUSTED,
            FailureKind.BAD_REQUEST,
            FailureKind.AUTH,
            FailureKind.CONTEXT_OVERFLOW,
            FailureKind.CONTENT_REFUSED,
            FailureKind.MALFORMED,
            FailureKind.MALFORMED_TOOL_CALL,
            FailureKind.INTERNAL,
            FailureKind.CIRCUIT_OPEN,
            FailureKind.INTERRUPTED,
            FailureKind.SLOW_CLIENT,
        )
    ),
    Failure(kind=FailureKind.STALLED, reason="deadline"),
    Failure(kind=FailureKind.CONNECTION_LOST, reason="tls"),
    *(
        Failure(kind=FailureKind.SERVER_ERROR, status=status)
        for status in (501, 505, 519, 530, 410)
    ),
]


def test_every_kind_is_in_one_of_the_lists():
    assert {failure.kind for failure in TRANSIENT + FINAL} == set(FailureKind)


@pytest.mark.parametrize("failure", TRANSIENT, ids=str)
def test_transient_failure_is_retried(failure):
    assert is_transient(failure)
    assert isinstance(decide(failure), Retry)


@pytest.mark.parametrize("failure", FINAL, ids=str)
@pytest.mark.parametrize("snapshot", [NOTHING, TEXT, TOOL, TEXT_AND_TOOL])
def test_other_failure_ends_the_turn_whatever_was_shown(failure, snapshot):
    assert not is_transient(failure)
    assert isinstance(decide(failure, snapshot), GiveUp)


@pytest.mark.parametrize(
    ("snapshot", "rule", "goes_on", "reconnecting"),
    [
        (NOTHING, "stop", True, False),
        (UNTAKEN, "stop", True, False),
        (WHITE, "stop", True, True),
        (TOOL, "stop", True, False),
        (TEXT, "stop", False, False),
        (TEXT_AND_TOOL, "stop", True, True),
        (NOTHING, "restart", True, False),
        (TEXT, "restart", True, True),
        (TEXT_AND_TOOL, "restart", True, True),
    ],
)
def test_what_was_shown_decides(snapshot, rule, goes_on, reconnecting):
    decision = decide(snapshot=snapshot, policy=resolved(after_visible_text=rule))

    assert isinstance(decision, Retry) is goes_on
    if goes_on:
        assert kinds(decision) == (["reconnecting"] if reconnecting else [])


def test_notice_says_that_it_is_reconnecting():
    ((_, text),) = decide(snapshot=WHITE).notices

    assert "reconnecting" in text


@pytest.mark.parametrize("snapshot", [NOTHING, TOOL, TEXT_AND_TOOL])
@pytest.mark.parametrize("retries", [0, 1, 2])
def test_retries_are_counted(snapshot, retries):
    policy = resolved(retries=retries)

    for used in range(1, retries + 1):
        assert isinstance(decide(snapshot=snapshot, used=used, policy=policy), Retry)
    assert isinstance(decide(snapshot=snapshot, used=retries + 1, policy=policy), GiveUp)


def test_back_off_grows_and_stays_at_its_last_step():
    policy = resolved(retries=5)

    delays = [decide(used=used, policy=policy).delay_s for used in (1, 2, 3, 4, 5)]
    assert delays == [1, 2, 4, 4, 4]


def test_chance_adds_its_part_to_the_back_off():
    policy = resolved(backoff_s=(10,), backoff_jitter=0.5)

    assert decide(policy=policy, chance=0.0).delay_s == 10
    assert decide(policy=policy, chance=1.0).delay_s == 15


def test_wait_that_was_asked_for_replaces_the_back_off():
    def limited(wait_s):
        return Failure(kind=FailureKind.RATE_LIMITED, status=429, retry_after_s=wait_s)

    assert decide(limited(30.0), chance=1.0).delay_s == 30
    assert decide(limited(0.0)).delay_s == 0
    assert decide(limited(-5.0)).delay_s == 0
    assert isinstance(decide(limited(60.0)), Retry)


@pytest.mark.parametrize(
    "kind", [FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.SERVER_ERROR]
)
def test_wait_over_the_cap_ends_the_turn_at_once(kind):
    decision = decide(Failure(kind=kind, retry_after_s=60.5))

    assert isinstance(decision, GiveUp)
    assert "60.5" in decision.why


def test_refused_stream_options_are_left_out_for_free():
    decision = decide(REFUSED, refused="stream_options", policy=resolved(retries=0))

    assert decision == Retry(0.0, Asked(usage_options=False), free=True, why=decision.why)


def test_refused_streaming_is_left_out_for_free_and_said():
    decision = decide(REFUSED, refused="streaming", policy=resolved(retries=0))

    assert (decision.delay_s, decision.free) == (0.0, True)
    assert decision.asked == Asked(stream=False, usage_options=False)
    assert kinds(decision) == ["streaming_disabled"]


def test_refusal_of_what_was_not_asked_for_is_no_way_round():
    plain = Asked(stream=False, usage_options=False)

    for refused in ("stream_options", "streaming"):
        assert isinstance(decide(REFUSED, refused=refused, asked=plain), GiveUp)


def test_refusal_after_something_was_taken_ends_the_turn():
    for refused in ("stream_options", "streaming"):
        assert isinstance(decide(REFUSED, WHITE, refused=refused), GiveUp)


def test_both_refusals_one_after_the_other():
    first = decide(REFUSED, refused="stream_options")
    second = decide(REFUSED, refused="streaming", asked=first.asked)
    third = decide(REFUSED, refused="streaming", asked=second.asked)

    assert first.free
    assert second.free
    assert isinstance(third, GiveUp)


def test_contentless_frames_alone_switch_streaming_off_within_the_retries():
    empty = Failure(kind=FailureKind.EMPTY)
    decision = decide(empty, learned="contentless")

    assert not decision.free
    assert decision.delay_s == 1
    assert decision.asked == Asked(stream=False, usage_options=False)
    assert kinds(decision) == ["streaming_disabled"]
    assert isinstance(decide(empty, learned="contentless", used=3), GiveUp)


def test_empty_answer_otherwise_is_asked_for_again_in_the_same_way():
    empty = Failure(kind=FailureKind.EMPTY)
    plain = Asked(stream=False, usage_options=False)

    assert decide(empty).asked == Asked()
    assert decide(empty, learned="contentless", asked=plain).asked == plain
    assert decide(TRUNCATED, learned="contentless").asked == Asked()


def test_next_attempt_asks_for_what_this_one_did():
    without = Asked(usage_options=False)

    assert decide(asked=without).asked == without


def test_call_gone_wrong_is_asked_for_with_more_care_from_then_on():
    broken = Failure(kind=FailureKind.MALFORMED_TOOL_CALL, retryable=True)
    careful = Asked(buffered_tools=True)

    assert decide(broken, TEXT_AND_TOOL).asked == careful
    assert decide(broken, asked=careful).asked == careful
    assert decide(TRUNCATED, asked=careful).asked == careful
    assert decide(TRUNCATED).asked == Asked()
    assert isinstance(decide(broken, used=3, policy=resolved(retries=2)), GiveUp)


def test_care_outlasts_what_is_left_out():
    careful = Asked(buffered_tools=True)
    plain = Asked(stream=False, usage_options=False, buffered_tools=True)

    assert decide(TRUNCATED, asked=careful, refused="streaming").asked == plain
    assert Memory(stream=False).limit(careful) == plain


@pytest.mark.parametrize("rule", ["stop", "restart"])
@pytest.mark.parametrize(
    ("snapshot", "goes_on"),
    [(NOTHING, True), (UNTAKEN, True), (TOOL, True), (WORDS, False), (TEXT_AND_TOOL, False)],
)
def test_words_that_cannot_be_taken_back_end_the_turn(snapshot, goes_on, rule):
    policy = resolved(after_visible_text=rule)
    decision = decide(TRUNCATED, snapshot, policy=policy, irrevocable=True)

    assert isinstance(decision, Retry) == goes_on
    assert goes_on or "taken back" in decision.why


def test_refused_option_is_left_out_for_those_who_were_shown_nothing():
    decision = decide(REFUSED, NOTHING, refused="stream_options", irrevocable=True)

    assert decision.free
