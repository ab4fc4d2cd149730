"""``GET /v1/lanes`` of a real daemon."""

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT, Frames
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


def ask(client, **more):
    body = {"endpoint": "main", "payload": PROMPT, **more}
    return client.post("/v1/turns", json=body).raise_for_status().json()["id"]


def lanes(client, **options):
    return client.get("/v1/lanes", **options).raise_for_status().json()["lanes"]


def lane(client, turn):
    [found] = [each for each in lanes(client) if each["id"] == turn]
    return found


def until(client, turn, holds):
    def look():
        found = lane(client, turn)
        return found if holds(found) else None

    return eventually(look, within_s=30)


def held(*words):
    return Answer([chat.role(), *map(chat.text, words), gate("shown"), chat.finish(), chat.done()])


def test_running_turn_has_its_attempts_and_its_clock(serve):
    cut = Answer([chat.role(), End.CUT])
    with Lab([cut, held("Hel", "lo")]) as lab, serve(endpoint(lab)).client() as client:
        turn = ask(client, policy={"stale_after_s": 77.0})
        found = until(
            client, turn, lambda each: each["attempts"] and each["attempts"][-1]["deltas"]
        )

        first, second = found["attempts"]
        assert (first["outcome"], second["outcome"]) == ("failed", "running")
        assert (second["text_chars"], second["tools"]) == (5, 0)
        assert second["token"] > first["token"]
        assert {mark["kind"] for mark in found["marks"]} >= {"fenced", "retry"}
        assert (found["stale_after_s"], found["quiet_limit_s"]) == (77.0, 77.0)
        assert found["quiet_since_s"] == second["last_progress_at_s"]
        assert "Hel" not in client.get("/v1/lanes").text

        lab.open("shown")
        ended = until(client, turn, lambda each: each["state"] == "completed")
        assert [each["outcome"] for each in ended["attempts"]] == ["failed", "completed"]
        assert ended["quiet_since_s"] is None


def test_attempt_that_was_read_is_superseded(serve):
    cut = Answer([chat.text("first"), gate("read"), End.CUT])
    with Lab([cut, held("second")]) as lab, serve(endpoint(lab)).client() as client:
        turn = ask(client, policy={"after_visible_text": "restart"})
        with client.stream("GET", f"/v1/turns/{turn}/events") as response:
            Frames(response).until(b"first")
            assert lane(client, turn)["readers"] == 1
            lab.open("read")
            found = until(client, turn, lambda each: len(each["attempts"]) > 1)
            found = until(client, turn, lambda each: each["attempts"][1]["deltas"])

        assert [each["void"] for each in found["attempts"]] == [True, False]
        assert "superseded" in {mark["kind"] for mark in found["marks"]}
        lab.open("shown")


def test_queued_turns_have_their_places(serve):
    with Lab([held("a")]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1")
        with daemon.client() as client:
            running, *queued = [ask(client) for _ in range(3)]
            until(client, running, lambda each: each["state"] == "running")

            assert [lane(client, each)["queue_place"] for each in queued] == [1, 2]
            assert [lane(client, each)["attempts"] for each in queued] == [[], []]
            figures = client.get("/v1/lanes").json()["daemon"]
            assert (figures["running"], figures["queued"], figures["draining"]) == (1, 2, False)
            for each in (*queued, running):
                client.post(f"/v1/turns/{each}/interrupt", json={"reason": "enough"})
            assert {lane(client, each)["ended_by"] for each in queued} == {"enough"}


def test_ended_turns_are_kept_for_a_while_and_no_longer_than_wanted(serve):
    with Lab([chat.answer("Hello")] * 60) as lab, serve(endpoint(lab)).client() as client:
        turns = [ask(client) for _ in range(60)]
        for turn in turns:
            eventually(lambda turn=turn: client.get(f"/v1/turns/{turn}").json()["ended_at"])
        shown = eventually(lambda: found if len(found := lanes(client)) == 50 else None)

        assert {each["id"] for each in shown} <= {*turns}
        assert client.get("/v1/lanes", params={"limit": 3}).json()["left_out"] == 47
        client.delete(f"/v1/turns/{shown[0]['id']}").raise_for_status()
        assert shown[0]["id"] not in {each["id"] for each in lanes(client)}


def test_turns_of_before_are_shown_after_a_restart(serve):
    with Lab([Answer([chat.text("Hel"), End.CUT])]) as lab:
        daemon = serve(endpoint(lab), policy="[policy]\nretries = 0\n")
        with daemon.client() as client:
            turn = ask(client)
            before = until(client, turn, lambda each: each["state"] == "failed")
        assert daemon.end() == 0
        with serve(endpoint(lab)).client() as client:
            after = lane(client, turn)

    for name in ("state", "ended_by", "ended_at", "events", "model"):
        assert after[name] == before[name]
    assert [each["failure"] for each in after["attempts"]] == ["truncated"]


def test_each_key_sees_its_own_turns_and_may_look_as_often_as_it_likes(serve):
    top = 'keys = ["env:ONE", "env:TWO"]\nrate_per_minute = 5'
    keys = {"ONE": "key-one", "TWO": "key-two"}
    with Lab([held("a")]) as lab:
        daemon = serve(endpoint(lab), top=top, environ=keys)
        one, two = ({"authorization": f"Bearer {key}"} for key in keys.values())
        with daemon.client(headers=one) as client:
            turn = ask(client)
            for _ in range(20):
                assert [each["id"] for each in lanes(client)] == [turn]
            assert lanes(client, headers=two) == []
            assert client.get("/v1/lanes", headers={"authorization": ""}).status_code == 401
            lab.open("shown")


def test_wrong_limit_is_said(serve):
    with Lab([]) as lab, serve(endpoint(lab)).client() as client:
        refused = client.get("/v1/lanes", params={"limit": "many"})

    assert refused.status_code == 400
    assert "limit='many'" in refused.json()["error"]["message"]
