"""Redirects: within the server that was asked they are followed; no other is sent the prompt."""

from typing import Any, NamedTuple

import httpx2
import pytest

from tests.wire.conftest import Worker
from tidegate.actors.provider.network import REDIRECTS_MAX, _is_same_host
from tidegate.lab import Answer, Lab, chat, messages, responses
from tidegate.protocol.attempts import Target
from tidegate.protocol.failures import FailureKind


class Wire(NamedTuple):
    """Where a wire's requests go, by its base path; converse is in ``tests/e2e``."""

    name: str
    base: str
    path: str
    form: Any
    version: str = ""

    def target(self, origin):
        return Target(self.name, base_url=origin + self.base, api_version=self.version)


AZURE = "/openai/deployments/m/chat/completions"
WIRES = [
    Wire("chat", "/v1", "/v1/chat/completions", chat),
    Wire("chat", "", AZURE, chat, "2024-10-21"),
    Wire("responses", "/v1", "/v1/responses", responses),
    Wire("messages", "", "/v1/messages", messages),
]


@pytest.fixture(params=WIRES, ids=lambda wire: wire.path)
def wire(request):
    return request.param


def away(place, status=307):
    return Answer((), status=status, headers={"location": place, "content-length": "0"})


@pytest.mark.parametrize("status", [307, 308])
def test_redirect_within_the_server_is_followed(worker, lab, wire, status):
    lab.add(away("/elsewhere", status), wire.form.answer("a"))

    assert worker.outcome(wire.target(lab.base))[0] == "a"
    assert [each.path for each in lab.requests] == [wire.path, "/elsewhere"]
    assert lab.requests[0].body == lab.requests[1].body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_server_is_refused(worker, lab, wire, status):
    with Lab([wire.form.answer("a")]) as other:
        lab.add(away(f"{other.base}/there{wire.path}?secret=1", status))

        failure = worker.failure(wire.target(lab.base))

        assert other.requests == []
    assert (failure.kind, failure.reason) == (FailureKind.BAD_REQUEST, "redirect")
    assert not failure.retryable
    assert failure.detail == (
        f"{lab.base} redirects to {other.base}, which is another server and was sent nothing: "
        f"if it is meant, set base_url to {other.base}/there{wire.base}"
    )


def test_address_with_which_it_would_work_is_named_only_if_there_is_one(worker, lab):
    lab.add(away("https://login.example:8443/sign-in"), away("http://a..b/v1"))
    for origin in ("https://login.example:8443", "http://a..b"):
        failure = worker.failure(lab)
        assert failure.reason == "redirect"
        assert failure.detail.startswith(f"{lab.base} redirects to {origin}, which")
        assert failure.detail.endswith("set base_url to an address of its own")


def test_redirect_of_a_later_request_is_refused_as_well(worker, lab):
    lab.add(chat.answer("a"), away("http://other.example/v1/chat/completions"))
    worker.outcome(lab)

    assert worker.failure(lab).reason == "redirect"
    assert len(lab.requests) == 2


@pytest.mark.parametrize(
    ("status", "place"),
    [
        (300, None),
        (302, None),
        (304, None),
        (307, None),
        (307, ""),
        (308, "http://there:there/"),
        (399, "/elsewhere"),
    ],
)
@pytest.mark.parametrize("earlier", [0, 1])
def test_redirect_to_nowhere_is_a_failure_that_names_the_status(lab, wire, earlier, status, place):
    headers = {"content-length": "0"} | ({} if place is None else {"location": place})
    lab.add(*[wire.form.answer("a")] * earlier, Answer((), status=status, headers=headers))
    target = wire.target(lab.base)
    with Worker() as worker:
        for _ in range(earlier):
            worker.outcome(target)

        failure = worker.failure(target)

    assert (failure.kind, failure.reason) == (FailureKind.BAD_REQUEST, "redirect")
    assert (failure.status, failure.retryable) == (status, False)
    assert failure.detail.startswith(f"HTTP {status} is no answer")
    assert failure.detail.endswith(f"(POST {lab.base}{wire.path})")
    assert len(lab.requests) == earlier + 1


def test_server_that_sends_around_in_a_ring_gets_the_prompt_a_few_times_alone(worker, lab):
    lab.add(*[away("/v1/chat/completions")] * 30)

    assert worker.failure(lab).reason == "url"
    assert len(lab.requests) == 1 + REDIRECTS_MAX


@pytest.mark.parametrize(
    ("now", "stays"),
    [
        ("http://a.test/v2", True),
        ("https://a.test/v2", True),  # servers send whoever comes without TLS to where it is
        ("https://a.test:8443/v2", False),
        ("http://a.test:8080/v2", False),
        ("https://b.test/v2", False),
        ("http://x.a.test/v2", False),
    ],
)
def test_server_is_known_by_scheme_host_and_port(now, stays):
    assert _is_same_host(httpx2.URL("http://a.test/v1"), httpx2.URL(now)) is stays


def test_server_with_tls_is_none_without():
    assert not _is_same_host(httpx2.URL("https://a.test/v1"), httpx2.URL("http://a.test/v1"))
