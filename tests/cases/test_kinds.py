"""What the field's cases show of one wire is shown of all: the kind of the fault, not the case."""

import dataclasses

import pytest

import tidegate as tg
from tests.cases.stage import PAYLOADS, seen
from tests.cases.wires import WORDS
from tidegate.lab import Answer, End, HttpDate, gate, pace, raw, send
from tidegate.lab.script import Send
from tidegate.testing.reading import Reading


LEFT = ("eof", "reset")
SSE_WIRES = ("chat", "responses", "messages")
WIDE = "潮🌍 é"
PATIENT = {"first_event_timeout_s": 30.0}


@pytest.fixture(params=WORDS)
def wire(request):
    return request.param


@pytest.fixture
def words(wire):
    return WORDS[wire]


@pytest.fixture
def ask(stage, wire):
    """Make a request that is not retried unless a policy says so."""

    def make(lab, **policy):
        given = {"retries": 0, "backoff_s": (0.01,), "backoff_jitter": 0.0} | policy
        endpoint = stage.endpoint(wire, lab)
        return tg.Request(endpoint, PAYLOADS[wire], policy=tg.Policy(**given))

    return make


@pytest.fixture
def play(stage, ask):
    """Run one turn against these answers; every request must have had one."""

    def run(*answers, **policy):
        lab = stage.lab(answers)
        call = stage.call(ask(lab, **policy))
        assert lab.unexpected == []
        call.requests = lab.requests
        return call

    return run


def is_whole(call, text):
    answer = call.answer
    assert call.failure is None
    assert (call.visible, answer.text, answer.finish) == (text, text, "stop")
    assert answer.usage == tg.Usage(input_tokens=7, output_tokens=1)
    return True


def is_partial(call, text, *kinds):
    answer = call.answer
    assert call.failure.kind in kinds
    assert call.failure.retryable
    assert (call.visible, answer.text, answer.finish) == (text, text, "incomplete")
    assert answer.partial
    return True


class TestRetries:
    """RTY-01, RTY-03, RTY-05, RTY-07, ERR-01, BED-05."""

    @pytest.fixture
    def cut_once_taken(self, stage, ask, words):
        """Have a stream cut behind text that was taken, and another one at hand."""

        def run(**policy):
            first = [*words.begin, words.text("Once upon a "), gate("taken"), End.CUT]
            answers = [words.stream(*first), words.answer("Once upon a time.")]
            lab = stage.lab(answers)
            turn = stage.runtime.start(ask(lab, retries=1, **policy))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            return seen(reading.events, 0.0, turn.result), lab

        return run

    def test_nothing_visible_is_doubled(self, cut_once_taken):
        call, lab = cut_once_taken()

        assert is_partial(call, "Once upon a ", "truncated")
        assert len(lab.requests) == 1

    def test_restart_is_announced(self, cut_once_taken):
        call, _ = cut_once_taken(after_visible_text="restart")

        assert is_whole(call, "Once upon a time.")
        [superseded] = [each for each in call.events if isinstance(each, tg.AttemptSuperseded)]
        assert (superseded.attempt, superseded.retracts) == (1, len("Once upon a "))

    def test_error_before_any_word_is_retried(self, play, words):
        call = play(words.stream(words.begin[0], words.failing), words.answer("fine"), retries=1)

        assert is_whole(call, "fine")
        assert [each.failure and each.failure.kind for each in call.answer.attempts] == [
            "server_error",
            None,
        ]

    @pytest.mark.parametrize(
        ("headers", "shortest_s", "longest_s"),
        [
            ({"retry-after-ms": "20", "retry-after": "30"}, 0.02, 0.02),
            ({"retry-after-ms": "-1", "retry-after": "0"}, 0.0, 0.0),
            ({"retry-after-ms": "nan", "retry-after": "soon"}, 0.01, 0.01),
            ({"retry-after": HttpDate(-5.0)}, 0.0, 0.0),
            ({"retry-after": HttpDate(1.5)}, 0.0, 1.5),
        ],
    )
    def test_wait_that_the_provider_asks_for(self, play, words, headers, shortest_s, longest_s):
        call = play(words.limited("slow down", headers), words.answer("fine"), retries=1)

        assert is_whole(call, "fine")
        [retry] = [each for each in call.events if isinstance(each, tg.RetryScheduled)]
        assert retry.cause.kind == "rate_limited"
        assert shortest_s <= retry.delay_s <= longest_s

    def test_loose_words_about_a_quota_are_no_verdict(self, play, words):
        said = "INSUFFICIENT QUOTA: concurrent request limit reached"
        call = play(words.limited(said, {}), words.answer("fine"), retries=1)

        assert is_whole(call, "fine")
        assert call.answer.attempts[0].failure.kind == "rate_limited"
        assert said in call.answer.attempts[0].failure.detail

    def test_call_without_evidence_is_asked_for_again(self, play, words):
        cut = words.stream(*words.call('{"sum":10}'), End.EOF)
        whole = words.stream(*words.call('{"sum":11}'), *words.called('{"sum":11}'))
        call = play(cut, whole, retries=1)

        [paid] = call.answer.tool_calls
        assert paid.parsed() == {"sum": 11}
        assert call.answer.attempts[0].failure.kind == "truncated"


class TestEvidence:
    """HNG-02, ERR-09, FIN-03, FIN-13."""

    def test_silence_behind_it_is_no_stall(self, play, words):
        steps = [*words.begin, words.text("done"), *words.end("done")]
        steps = [step for step in steps if b"[DONE]" not in getattr(step, "data", b"")]
        call = play(words.stream(*steps, End.HOLD), finish_grace_s=1.0, stale_after_s=30)

        assert is_whole(call, "done")

    @pytest.mark.parametrize("end", [End.EOF, End.CUT, End.RESET])
    @pytest.mark.parametrize("noise", [b"", b"event: me", b"\x00\xff" * 20])
    def test_whatever_follows_it_changes_nothing(self, play, words, noise, end):
        steps = [*words.begin, words.text("All of it."), *words.end("All of it.")]
        call = play(words.stream(*steps, *([raw(noise)] if noise else []), end), retries=1)

        assert is_whole(call, "All of it.")
        assert len(call.requests) == 1

    def test_error_behind_it_changes_nothing(self, play, words):
        steps = [*words.begin, words.text("ok"), *words.end("ok"), words.failing]

        assert is_whole(play(words.stream(*steps), retries=1), "ok")


class TestErrorsInTheStream:
    """ERR-03, ERR-05, BED-03, HNG-09."""

    def test_what_was_said_before_is_kept(self, stage, ask, words):
        steps = [*words.begin, words.text("Half a"), gate("taken"), words.failing]
        lab = stage.lab([words.stream(*steps)])
        turn = stage.runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        lab.open("taken")
        reading.to_end()

        assert is_partial(seen(reading.events, 0.0, turn.result), "Half a", "server_error")

    def test_reader_of_a_call_is_released_by_it(self, play, words):
        call = play(words.stream(*words.call('{"text":"ab'), words.failing))

        assert call.failure.kind == "server_error"
        assert call.events[-1].error == call.failure
        assert call.answer.tool_calls == ()


class TestSilence:
    """HNG-03, HNG-05, HNG-07."""

    def test_held_stream_is_left(self, stage, ask, words):
        lab = stage.lab([words.stream(*words.begin, words.text("thinking"), End.HOLD)])
        call = stage.call(ask(lab, stale_after_s=0.2, alive_timeout_s=0.2, **PATIENT))

        assert is_partial(call, "thinking", "stalled")
        assert lab.wait_closed().how in LEFT

    def test_life_is_no_progress(self, play, words):
        life = pace([words.ping], 0.05, times=400)
        # Life is told once a second: a shorter limit could not know it from silence.
        limits = {"stale_after_s": 2.1, "alive_timeout_s": 30}
        call = play(words.stream(*words.begin, life, End.HOLD), **limits, **PATIENT)

        assert (call.failure.kind, call.failure.reason) == ("stalled", "no_progress")

    def test_life_keeps_a_slow_model_alive(self, play, words):
        life = pace([words.ping], 0.1, times=20)
        steps = [*words.begin, life, words.text("thought"), *words.end("thought")]
        limits = {"stale_after_s": 30, "alive_timeout_s": 1.5}

        assert is_whole(play(words.stream(*steps), **limits), "thought")

    def test_first_byte_has_a_limit_of_its_own(self, play, words):
        answer = words.stream(End.HOLD, headers_with_first_frame=True, repeat=True)
        call = play(answer, first_event_timeout_s=0.2, stale_after_s=30, retries=1)

        assert (call.failure.kind, call.failure.reason) == ("stalled", "first_byte")
        assert len(call.requests) == len(call.answer.attempts) == 2


class TestToolCalls:
    """TOOL-09, TOOL-11."""

    def test_call_that_was_cut_is_never_a_call(self, play, words):
        call = play(words.stream(*words.call('{"body":"half of'), *words.cut))
        answer = call.answer

        assert (answer.tool_calls, answer.finish) == ((), "length")
        [lost] = answer.incomplete_tool_calls
        assert (lost.id, lost.name, lost.arguments) == ("c1", "pay", '{"body":"half of')

    def test_no_arguments_are_an_empty_object(self, play, words):
        call = play(words.stream(*words.call(""), *words.called("")))

        [paid] = call.answer.tool_calls
        assert (paid.id, paid.name, paid.parsed()) == ("c1", "pay", {})
        assert call.answer.finish == "tool_calls"


class TestFraming:
    """FRM-02, FRM-03, FRM-05, FRM-06, FRM-09, FRM-11."""

    def test_characters_that_reads_cut_are_whole(self, play, words):
        bytewise = [
            dataclasses.replace(step, piece=1) if isinstance(step, Send) else step
            for step in words.answer(WIDE).steps
        ]

        assert is_whole(play(words.stream(*bytewise)), WIDE)

    def test_document_in_place_of_a_stream(self, play, words):
        assert is_whole(play(Answer.json(words.document("whole"))), "whole")

    def test_document_in_place_of_a_stream_under_its_name(self, play, words):
        answer = Answer.json(words.document("whole"), headers={**words.headers})

        assert is_whole(play(answer), "whole")

    def test_stream_under_another_name(self, play, words):
        steps = words.answer("mislabelled").steps
        call = play(Answer(steps, headers={"content-type": "text/plain"}))

        assert is_whole(call, "mislabelled")

    @pytest.mark.parametrize("wire", SSE_WIRES, indirect=True)
    @pytest.mark.parametrize("line_end", ["\r", "\r\n"])
    def test_every_line_end_is_one(self, play, words, line_end):
        steps = [raw(_with(line_end, step.data), piece=7) for step in words.answer("one").steps]

        assert is_whole(play(words.stream(*steps)), "one")

    @pytest.mark.parametrize("wire", SSE_WIRES, indirect=True)
    @pytest.mark.parametrize(
        "record",
        ["retry: 3000", ": ping", "event: keepalive", "id: 8", "data:", "data: null", "id: 9\n: x"],
    )
    def test_record_without_an_event_is_none(self, play, words, record):
        between = send(f"{record}\n\n")
        steps = [each for step in words.answer("here").steps for each in (between, step)]

        assert is_whole(play(words.stream(*steps)), "here")

    @pytest.mark.parametrize("wire", SSE_WIRES, indirect=True)
    def test_last_event_needs_no_blank_line(self, play, words):
        *steps, last = [step for step in words.answer("done").steps if b"[DONE]" not in step.data]
        steps.append(raw(last.data.rstrip(b"\n")))

        assert is_whole(play(words.stream(*steps, End.EOF)), "done")


def _with(line_end, data):
    return data.replace(b"\n", line_end.encode())
