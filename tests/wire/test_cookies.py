"""One client serves many endpoints: what a server gives to one of them comes with no other."""

import msgspec
import pytest

from tests.wire.test_redirects import WIRES, away
from tidegate.lab import Answer, Lab


GIVEN = "session=of-the-first; Path=/"


@pytest.fixture(params=WIRES, ids=lambda wire: wire.path)
def wire(request):
    return request.param


@pytest.fixture
def giver(wire):
    """A server that gives a cookie with each answer, and by a redirect."""
    plain, redirect = wire.form.answer("a"), away("/moved")
    headers = {"set-cookie": GIVEN}

    def answer(request):
        first = redirect if request.path == wire.path and request.headers.get("x-way") else plain
        return Answer(first.steps, status=first.status, headers={**first.headers, **headers})

    with Lab(route=answer) as lab:
        yield lab


def target_of(lab, wire, **headers):
    target = wire.target(lab.base)
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return msgspec.structs.replace(target, headers=pairs)


def test_no_cookie_is_taken(worker, giver, wire):
    for user in ("a", "a", "b", "b", "a"):
        assert worker.outcome(target_of(giver, wire, x_user=user))[0] == "a"

    assert len(giver.requests) == 5
    assert {each.headers.get("cookie") for each in giver.requests} == {None}


def test_no_cookie_is_taken_from_a_redirect(worker, giver, wire):
    for _ in range(2):
        assert worker.outcome(target_of(giver, wire, x_way="round"))[0] == "a"

    assert [each.path for each in giver.requests] == [wire.path, "/moved"] * 2
    assert {each.headers.get("cookie") for each in giver.requests} == {None}


def test_ones_own_cookie_is_sent_wherever_the_request_goes(worker, giver, wire):
    for way in ({}, {}, {"x_way": "round"}, {"x_way": "round"}):
        worker.outcome(target_of(giver, wire, cookie="own=1", **way))

    assert [each.path for each in giver.requests][2:] == [wire.path, "/moved"] * 2
    assert {each.headers.get("cookie") for each in giver.requests} == {"own=1"}
