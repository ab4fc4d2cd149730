"""The Converse wire falls back, notices silence and gives up as a whole; each event is life."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, Lab, converse, gate, pace
from tidegate.testing.reading import Reading


MODEL = "anthropic.claude-test-v1:0"
HELLO = [{"role": "user", "content": [{"text": "Hello"}]}]
ALL_KINDS = [
    converse.text("a"),
    converse.tool("x", id="t1", block=1),
    converse.arguments("{}", block=1),
    converse.block_stop(block=1),
    converse.message_stop("end_turn"),
    converse.metadata(1, 1),
]


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1, settings=tg.Settings(preload=("converse",))) as runtime:
        with Lab([converse.answer("warm")]) as lab:
            endpoint = tg.Endpoint.converse("us-east-1", lab.base, api_key="key")
            runtime.run(tg.Request(endpoint, {"modelId": MODEL, "messages": HELLO}))
        yield runtime


@pytest.fixture
def asking(request):
    """Make a request to a lab; keywords are fields of its policy."""
    own = {"x-test": request.node.name}

    def ask(lab, model=MODEL, **policy):
        endpoint = tg.Endpoint.converse("us-east-1", lab.base, api_key="key", headers=own)
        payload = {"modelId": model, "messages": HELLO}
        return tg.Request(endpoint, payload, policy=tg.Policy(**policy))

    return ask


def operations(lab):
    return [request.path.rpartition("/")[2] for request in lab.requests]


def test_iam_denial_falls_back_inline_and_disables_streaming(runtime, asking):
    denied = converse.error_answer(
        403,
        "AccessDeniedException",
        "User is not authorized to perform: bedrock:InvokeModelWithResponseStream",
    )
    whole = Answer.json(converse.completion({"text": "hi"}))
    with Lab([denied, whole, whole]) as lab:
        heard = []
        answer = runtime.run(asking(lab), heard.append)
        runtime.run(asking(lab))

        assert answer.text == "hi"
        assert [each.kind for each in heard if isinstance(each, tg.Notice)] == [
            "streaming_disabled"
        ]
        assert [attempt.free for attempt in answer.attempts] == [False, True]
        assert operations(lab) == ["converse-stream", "converse", "converse"]


def test_on_event_fires_per_bedrock_event(runtime, asking):
    """All of them together take longer than the silence that is allowed, none of them alone."""
    answer = converse.stream(pace(ALL_KINDS, 0.4))
    with Lab([answer]) as lab:
        patience = {"stale_after_s": 1.2, "alive_timeout_s": 1.2, "first_event_timeout_s": 30}
        answer = runtime.run(asking(lab, **patience))

        assert answer.text == "a"
        assert [call.name for call in answer.tool_calls] == ["x"]
        assert answer.usage.output_tokens == 1
        assert len(answer.attempts) == 1


class Raising(tg.Observer):
    """Fails at everything that it is told."""

    def __init__(self):
        self.chunks = 0

    def chunk(self, turn_id, attempt, chunk):
        self.chunks += 1
        raise ValueError("it always fails")


def test_on_event_exception_is_swallowed(asking):
    raising = Raising()
    settings = tg.Settings(preload=("converse",))
    with tg.Runtime(workers=1, settings=settings, observers=[raising]) as runtime:
        with Lab([converse.stream(*ALL_KINDS[:1], *ALL_KINDS[4:])]) as lab:
            answer = runtime.run(asking(lab))

        assert answer.finish == "stop"
        assert answer.text == "a"
    assert raising.chunks > 0


def go_stale(runtime, request):
    with pytest.raises(tg.StreamStalled) as raised:
        runtime.run(request)
    return raised.value


def test_stalled_stream_bumps_streak_and_aborts(runtime, asking):
    silent = converse.stream(converse.message_start(), gate("never"))
    with Lab([silent, converse.answer("hi")]) as lab:
        impatient = {"stale_after_s": 0.5, "first_event_timeout_s": 30}
        error = go_stale(runtime, asking(lab, **impatient))

        assert isinstance(error, TimeoutError)
        assert len(error.answer.attempts) == 1
        assert lab.wait_closed(0).how in ("eof", "reset")
        # It has counted, and has counted once.
        with pytest.raises(tg.CircuitOpen):
            runtime.run(asking(lab, stale_giveup=1))
        assert runtime.run(asking(lab, stale_giveup=2)).text == "hi"


def test_pre_elevated_streak_aborts_before_streaming(runtime, asking):
    silent = converse.stream(converse.message_start(), gate("never"), repeat=True)
    with Lab([silent]) as lab:
        for _ in range(2):
            go_stale(runtime, asking(lab, stale_after_s=0.3, first_event_timeout_s=30))
        before = len(lab.requests)

        with pytest.raises(RuntimeError, match="unresponsive"):
            runtime.run(asking(lab, stale_giveup=2))

        assert len(lab.requests) == before == 2


def test_successful_stream_resets_streak(runtime, asking):
    silent = converse.stream(converse.message_start(), gate("never"))
    with Lab([silent, converse.answer("hi"), converse.answer("still there")]) as lab:
        go_stale(runtime, asking(lab, stale_after_s=0.3, first_event_timeout_s=30))
        assert runtime.run(asking(lab)).text == "hi"

        assert runtime.run(asking(lab, stale_giveup=1)).text == "still there"


@pytest.mark.parametrize(
    ("model", "seconds", "slug"),
    [
        ("us.anthropic.claude-opus-4-6-v1:0", 240, "claude-opus-4"),
        ("us.anthropic.claude-sonnet-4-5-v1:0", 180, "claude-sonnet-4.5"),
        ("us.anthropic.claude-sonnet-4-6-v1:0", 180, "claude-sonnet-4.6"),
        ("eu.anthropic.claude-sonnet-4-5-v1:0", 180, "claude-sonnet-4.5"),
    ],
)
def test_bedrock_reasoning_models_resolve_floor(model, seconds, slug):
    """A context that is short and one that is long: the floor shows where it is the higher one."""
    endpoint = tg.Endpoint.converse("us-east-1")
    request = tg.Request(endpoint, {"modelId": model, "messages": HELLO})
    plain = tg.Request(endpoint, {"modelId": model, "messages": HELLO}, stream=False)

    assert tg.Policy().resolved(request, environ={})["stale_after_s"].value == max(180, seconds)
    assert tg.Policy().resolved(plain, environ={})["plain_stale_after_s"] == (
        seconds,
        f"floor {seconds} for {slug}",
    )


def test_reading_is_cut_off_from_a_stream_that_was_killed(runtime, asking):
    """What comes after the kill is never delivered, though the provider still sends it."""
    late = converse.stream(
        converse.text("first"), gate("killed"), converse.text(" late"), converse.message_stop()
    )
    with Lab([late]) as lab:
        turn = runtime.start(asking(lab, stale_after_s=0.3, first_event_timeout_s=30))
        reading = Reading(turn)
        reading.until(tg.TurnFailed)
        lab.open("killed")

        assert reading.texts == ["first"]
        assert turn.result().text == "first"
        assert turn.result().partial
