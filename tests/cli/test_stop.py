"""``tidegate stop``, as a process, against a real daemon."""

from tests.cli.daemons import ENVIRON, ask, held, silent, until


def test_turn_is_interrupted_for_its_reason(tidegate, daemon, lab):
    lab.add(silent("Hel"))
    turn = ask(daemon)
    until(daemon, turn, 2)
    stopped = tidegate("stop", turn, "--reason", "enough", "--url", daemon.url, env=ENVIRON)

    assert stopped == (0, f"{turn}: interrupted\n", "")
    assert lab.wait_closed().how in {"eof", "reset"}
    with daemon.client() as client:
        assert client.get(f"/v1/turns/{turn}").json()["reason"] == "enough"


def test_turn_that_has_ended_stays_as_it_is(tidegate, daemon, lab):
    lab.add(silent("Hel"))
    turn = ask(daemon)
    for reason in ("first", "second"):
        words = ("stop", turn, "--reason", reason, "--url", daemon.url)
        assert tidegate(*words, env=ENVIRON) == (0, f"{turn}: interrupted\n", "")

    with daemon.client() as client:
        assert client.get(f"/v1/turns/{turn}").json()["reason"] == "first"


def test_unknown_turn_is_said(tidegate, daemon):
    status, output, errors = tidegate("stop", "turn_x", "--url", daemon.url, env=ENVIRON)

    assert (status, output) == (1, "")
    assert "there is no such turn" in errors
    assert "turn_x" in errors
    assert "tidegate ps --all" in errors


def test_all_that_ps_writes_is_interrupted_in_quotes_too(tidegate, daemon, lab):
    lab.add(*(silent("Hel") for _ in range(3)))
    first, second, third = (ask(daemon) for _ in range(3))
    for turn in (first, second, third):
        until(daemon, turn, 2)
    words = ("stop", f"{first}\n{second}", third, "--url", daemon.url)

    said = "".join(f"{turn}: interrupted\n" for turn in (first, second, third))
    assert tidegate(*words, env=ENVIRON) == (0, said, "")


def test_one_unknown_turn_keeps_none_from_being_interrupted(tidegate, daemon, lab):
    lab.add(silent("Hel"))
    turn = ask(daemon)
    until(daemon, turn, 2)
    words = ("stop", "turn_x", turn, "--url", daemon.url)
    status, output, errors = tidegate(*words, env=ENVIRON)

    assert (status, output) == (1, f"{turn}: interrupted\n")
    assert "'turn_x'" in errors


def test_no_turn_at_all_is_wrong_use(tidegate, daemon):
    for words in ((), ("",), ("\n",)):
        status, output, errors = tidegate("stop", *words, "--url", daemon.url, env=ENVIRON)

        assert (status, output) == (2, "")
        assert "see `tidegate ps`" in errors


def test_what_is_no_id_is_wrong_use_before_any_turn_is_stopped(tidegate, daemon, lab):
    lab.add(held("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 2)
    status, output, errors = tidegate("stop", turn, "../..", "--url", daemon.url, env=ENVIRON)

    assert (status, output) == (2, "")
    assert "'../..' is no turn's id" in errors
    with daemon.client() as client:
        assert client.get(f"/v1/turns/{turn}").json()["state"] == "running"
    lab.open("shown")
