"""What an SDK has built once is sent again, and nobody can tell."""

import pytest

from tidegate.lab import Answer, End, Lab, chat, gate, messages, raw, responses
from tidegate.protocol.attempts import Target
from tidegate.protocol.failures import FailureKind


LATER = b'{"model":"another","messages":[{"role":"user","content":"Hello"}]}'
ANSWERS = {"chat": chat.answer, "responses": responses.answer, "messages": messages.answer}


def target_at(lab, wire="chat", **fields):
    base_url = lab.base if wire == "messages" else lab.url
    return Target(wire, base_url=base_url, api_key="the-key", **fields)


def told(request):
    """Return what a request says of itself, but for the length of its body."""
    return request.target, {
        name: value for name, value in request.headers.items() if name != "content-length"
    }


@pytest.mark.parametrize("wire", ANSWERS)
def test_later_requests_are_the_first_with_another_body(worker, lab, wire):
    target = target_at(lab, wire, headers=(("x-own", "1"),), query=(("a", "b"),))
    lab.add(*(ANSWERS[wire]("a") for _ in range(3)))

    for body in (b'{"model":"m"}', LATER, b'{"model":"m"}'):
        assert worker.outcome(target, body)[0] == "a"

    first, second, third = lab.requests
    assert told(first) == told(second) == told(third)
    assert second.body == b'{"stream":true,' + LATER[1:]
    assert second.headers["content-length"] == str(len(second.body))
    assert first.body == third.body


@pytest.mark.parametrize("wire", ANSWERS)
def test_sdk_itself_says_the_same_each_time(lab, wire, worker):
    """Nothing that an SDK varies from request to request is said again as it was."""
    lab.add(ANSWERS[wire]("a"), ANSWERS[wire]("a"))
    target = target_at(lab, wire)
    # Another target is another client of the SDK, and so another first request.
    other = Target(wire, base_url=f"{target.base_url}/", api_key="the-key")

    worker.outcome(target, b'{"model":"m"}')
    worker.outcome(other, LATER)

    first, second = lab.requests
    assert told(first) == told(second)


def test_other_headers_or_query_are_another_first_request(worker, lab):
    plain, own = target_at(lab), target_at(lab, headers=(("x-own", "1"),))
    lab.add(*(chat.answer("a") for _ in range(4)))

    for target in (plain, own, plain, own):
        worker.outcome(target)

    assert [each.headers.get("x-own") for each in lab.requests] == [None, "1", None, "1"]


def test_key_that_has_changed_is_sent(worker, lab):
    lab.add(*(chat.answer("a") for _ in range(2)))

    for key in ("old", "new"):
        worker.outcome(Target("chat", base_url=lab.url, api_key=key))

    sent = [each.headers["authorization"] for each in lab.requests]
    assert sent == ["Bearer old", "Bearer new"]


def test_azure_deployments_are_told_apart(worker, lab):
    target = target_at(lab, api_version="2024-10-21")
    lab.add(*(chat.answer("a") for _ in range(3)))

    for model in (b"one", b"two", b"one"):
        worker.outcome(target, b'{"model":"%b"}' % model)

    one, two, again = (each.path for each in lab.requests)
    assert "/deployments/one/" in one
    assert "/deployments/two/" in two
    assert again == one


@pytest.mark.parametrize("wire", ANSWERS)
def test_error_of_a_later_request_is_the_same_error(worker, lab, wire):
    error = {"error": {"message": "no luck", "code": "the_code"}}
    refusal = Answer.json(error, 429, {"x-request-id": "req-9", "retry-after": "7"})
    lab.add(refusal, ANSWERS[wire]("a"), refusal)
    target = target_at(lab, wire)

    first = worker.failure(target, b'{"model":"m"}')
    worker.outcome(target, b'{"model":"m"}')
    later = worker.failure(target, b'{"model":"m"}')

    assert first == later
    assert (later.kind, later.retry_after_s) == (FailureKind.RATE_LIMITED, 7)


@pytest.mark.parametrize("end", [End.RESET, End.CUT])
def test_connection_lost_before_the_head_is_the_same_failure(worker, lab, end):
    dead = Answer([end], headers_with_first_frame=True)
    lab.add(dead, chat.answer("a"), dead)

    first = worker.failure(lab)
    worker.outcome(lab)
    later = worker.failure(lab)

    assert (first.kind, first.reason, first.cause) == (later.kind, later.reason, later.cause)
    assert later.kind is FailureKind.CONNECTION_LOST


def test_server_that_is_gone_is_refused_as_at_first(worker, dead_port):
    with Lab([chat.answer("a")]) as lab:
        target = target_at(lab)
        worker.outcome(target)

    later = worker.failure(target)
    first = worker.failure(Target("chat", base_url=f"http://127.0.0.1:{dead_port}/v1"))

    assert (later.kind, later.reason) == (first.kind, first.reason)
    assert later.kind is FailureKind.CONNECTION_LOST


def test_request_that_was_redirected_is_not_kept(worker, lab):
    away = Answer((), status=307, headers={"location": "/v2/chat", "content-length": "0"})
    lab.add(away, chat.answer("a"), chat.answer("b"))

    assert worker.outcome(lab)[0] == "a"
    assert worker.outcome(lab)[0] == "b"

    paths = [each.path for each in lab.requests]
    assert paths == ["/v1/chat/completions", "/v2/chat", "/v1/chat/completions"]


def test_redirect_of_a_later_request_is_followed(worker, lab):
    away = Answer((), status=307, headers={"location": "/v2/chat", "content-length": "0"})
    lab.add(chat.answer("a"), away, chat.answer("b"), chat.answer("c"))

    for text in ("a", "b", "c"):
        assert worker.outcome(lab)[0] == text

    first, asked, sent_on, last = lab.requests
    assert (sent_on.path, sent_on.body) == ("/v2/chat", asked.body)
    assert told(first) == told(asked) == told(last)  # nobody is asked again for one attempt
    assert told(sent_on)[1] == told(asked)[1]


def test_answer_at_the_end_of_a_redirect_may_be_an_error(worker, lab):
    away = Answer((), status=307, headers={"location": "/v2/chat", "content-length": "0"})
    lab.add(chat.answer("a"), away, Answer.json({"error": {"message": "no luck"}}, 429))
    worker.outcome(lab)

    failure = worker.failure(lab)

    assert (failure.kind, failure.detail) == (FailureKind.RATE_LIMITED, "no luck")


def test_later_requests_may_be_redirected_at_the_same_time(worker, lab):
    steps = [gate("both"), raw(b" ")]
    place = {"location": "/v2/chat"}
    away = Answer(steps, status=307, headers=place, headers_with_first_frame=True)
    lab.add(chat.answer("a"), away, away, *[chat.answer("b")] * 2)
    worker.outcome(lab)

    tokens = [worker.start(lab) for _ in range(2)]
    lab.reached("both", times=2)
    lab.open("both")

    assert [worker.end_of(token).failure for token in tokens] == [None, None]


def test_cancel_of_a_later_request_closes_its_socket(worker, lab):
    lab.add(chat.answer("a"), Answer([chat.text("b"), End.HOLD]))
    worker.outcome(lab)

    token = worker.start(lab)
    lab.wait_requests(2)
    worker.cancel(token)

    assert lab.wait_closed(1).how in ("eof", "reset")
    assert worker.end_of(token).cancelled
