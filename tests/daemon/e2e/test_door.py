"""Who is let in, and how much of anything: what the daemon answers to all others."""

import base64
import socket

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT, DaemonProcess
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
ASKED = {"endpoint": "main", "payload": PROMPT}
KEYS = {"TEST_KEY_A": "key-of-a-tester", "TEST_KEY_B": "key-of-another"}
KEYED = 'keys = ["env:TEST_KEY_A", "env:TEST_KEY_B"]'
OPEN = {"/livez", "/readyz"}
WATCHED = ("/", "/metrics", "/openapi.json")


@pytest.fixture
def lab():
    with Lab([Answer(chat.answer("Hello").steps, repeat=True)]) as lab:
        yield lab


def bearer(key=KEYS["TEST_KEY_A"]):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def upstream():
    with Lab([Answer(chat.answer("Hello").steps, repeat=True)]) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def keyed(upstream, tmp_path_factory):
    config = "\n".join(('listen = "127.0.0.1:0"', KEYED, endpoint(upstream)))
    environ = {"TEST_PROVIDER_KEY": "provider-key", **KEYS}
    daemon = DaemonProcess(tmp_path_factory.mktemp("keyed"), config, environ)
    with daemon.client() as client:
        yield client
    assert daemon.end() == 0


class TestKeys:
    def test_nothing_is_done_without_one(self, keyed, upstream):
        asked = [
            ("POST", CHAT),
            ("POST", MESSAGES),
            ("POST", RESPONSES),
            ("GET", "/v1/models"),
            ("GET", "/v1/turns"),
            ("POST", "/v1/turns"),
            ("GET", "/v1/turns/turn_x"),
            ("GET", "/v1/turns/turn_x/events"),
            ("POST", "/v1/turns/turn_x/interrupt"),
            ("DELETE", "/v1/turns/turn_x"),
            ("GET", "/v1/nothing"),
        ]
        before = len(upstream.requests)
        for headers in ({}, bearer("key-of-nobody"), {"authorization": "Basic eDp5"}):
            for method, path in asked:
                refused = keyed.request(method, path, json=PROMPT, headers=headers)
                assert (refused.status_code, path) == (401, path)
                assert refused.headers["www-authenticate"].startswith("Bearer")
        assert len(upstream.requests) == before

    @pytest.mark.parametrize(
        "headers", [bearer(), bearer(KEYS["TEST_KEY_B"]), {"x-api-key": KEYS["TEST_KEY_A"]}]
    )
    def test_any_of_them_will_do_in_any_form(self, keyed, headers):
        assert keyed.post(CHAT, json=PROMPT, headers=headers).status_code == 200

    def test_probes_need_none(self, keyed):
        assert {path: keyed.get(path).status_code for path in OPEN} == dict.fromkeys(OPEN, 200)

    def test_what_is_watched_is_open_to_this_machine_alone(self, keyed):
        proxied = {"x-forwarded-for": "203.0.113.7"}
        basic = base64.b64encode(f"any:{KEYS['TEST_KEY_A']}".encode()).decode()
        for path in WATCHED:
            assert keyed.get(path).status_code == 200
            refused = keyed.get(path, headers=proxied)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Basic")
            known = {**proxied, "authorization": f"Basic {basic}"}
            assert keyed.get(path, headers=known).status_code == 200

    def test_no_key_is_passed_on(self, keyed, upstream):
        for headers in (bearer(), {"x-api-key": KEYS["TEST_KEY_A"]}):
            keyed.post(CHAT, json=PROMPT, headers={**headers, "x-of-mine": "marker"})

        for request in upstream.requests:
            shown = repr((request.headers, request.body))
            assert "provider-key" in shown
            assert KEYS["TEST_KEY_A"] not in shown
            assert "marker" not in shown

    def test_refusal_is_in_the_words_of_each_api(self, keyed):
        shapes = {path: keyed.post(path, json={}).json() for path in (CHAT, RESPONSES, MESSAGES)}

        assert shapes[CHAT]["error"]["code"] == "invalid_api_key"
        assert shapes[RESPONSES]["error"]["code"] == "invalid_api_key"
        assert shapes[MESSAGES]["type"] == "error"
        assert shapes[MESSAGES]["error"]["type"] == "authentication_error"


class TestReach:
    def test_address_of_others_needs_a_key(self, serve, lab):
        with pytest.raises(AssertionError, match=r"keys = \['env:TIDEGATE_KEY'\]"):
            serve(endpoint(lab), listen="0.0.0.0:0")

    def test_address_of_others_with_a_key_knows_no_open_page(self, serve, lab):
        daemon = serve(endpoint(lab), listen="0.0.0.0:0", top=KEYED, environ=KEYS)
        with Client(daemon.port) as client:
            assert client.ask("GET", "/metrics").until(b"}").startswith(b"HTTP/1.1 401 ")

    def test_name_that_is_not_ours_is_refused(self, serve, lab):
        daemon = serve(endpoint(lab), top='hosts = ["box.example"]')
        with daemon.client() as client:
            for host, status in [
                ("localhost", 200),
                (f"127.0.0.1:{daemon.port}", 200),
                ("[::1]:80", 200),
                ("box.example", 200),
                ("evil.example", 403),
                ("localhost.evil.example", 403),
                ("127.0.0.1.evil.example", 403),
                ("", 400),
                ("a b", 400),
            ]:
                for path in ("/v1/models", "/", "/livez"):
                    assert (
                        client.get(path, headers={"host": host}).status_code,
                        host,
                        path,
                    ) == (status, host, path)


class TestPages:
    ORIGIN = "https://app.example"

    def test_page_of_another_origin_is_refused(self, serve, lab):
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            refused = client.post(CHAT, json=PROMPT, headers={"origin": self.ORIGIN})
            own = client.post(CHAT, json=PROMPT, headers={"origin": daemon.url})
            preflight = client.options(
                CHAT,
                headers={"origin": self.ORIGIN, "access-control-request-method": "POST"},
            )

        assert (refused.status_code, own.status_code, preflight.status_code) == (403, 200, 403)
        assert "access-control-allow-origin" not in refused.headers
        assert "cors_origins" in refused.json()["error"]["message"]
        assert len(lab.requests) == 1

    def test_page_that_is_listed_may_read_every_answer(self, serve, lab):
        daemon = serve(endpoint(lab), top=f'cors_origins = ["{self.ORIGIN}"]')
        with daemon.client() as client:
            origin = {"origin": self.ORIGIN}
            preflight = client.options(
                "/v1/turns",
                headers={
                    **origin,
                    "access-control-request-method": "POST",
                    "access-control-request-headers": "content-type, idempotency-key",
                },
            )
            answers = [
                client.post(CHAT, json={**PROMPT, "stream": True}, headers=origin),
                client.post(CHAT, content="{", headers=origin),
                client.get("/v1/turns/turn_x/events", headers=origin),
            ]
            other = client.post(CHAT, json=PROMPT, headers={"origin": "https://evil.example"})

        assert preflight.status_code == 204
        assert "idempotency-key" in preflight.headers["access-control-allow-headers"]
        assert [each.status_code for each in answers] == [200, 400, 404]
        for each in answers:
            assert each.headers["access-control-allow-origin"] == self.ORIGIN
            assert "tidegate-turn" in each.headers["access-control-expose-headers"]
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers


class TestSizes:
    @pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES, "/v1/turns"])
    def test_body_that_is_too_large_is_refused(self, serve, lab, path):
        daemon = serve(endpoint(lab), top="body_bytes_max = 1000")
        pieces = [b"x" * 600] * 2
        with daemon.client() as client:
            declared = client.post(path, content=b"".join(pieces))
            chunked = client.post(path, content=iter(pieces))
            fits = client.post(path, content=b"x" * 1000)

        assert (declared.status_code, chunked.status_code, fits.status_code) == (413, 413, 400)
        for each in (declared, chunked):
            assert "1000" in each.json()["error"]["message"]

    def test_headers_that_are_too_large_are_refused(self, serve, lab):
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            long = client.get("/v1/models", headers={"x-long": "x" * (64 << 10)})
            many = client.get("/v1/models", headers={f"x-{n}": "y" for n in range(200)})
            still = client.get("/v1/models")

        assert (long.status_code, many.status_code, still.status_code) == (431, 431, 200)
        assert "headers" in many.json()["error"]["message"]

    def test_what_is_no_request_is_refused(self, serve, lab):
        daemon = serve(endpoint(lab))
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=30) as client:
            client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 400 ")


class TestRates:
    def test_key_that_asks_too_often_is_told_when_to_come_back(self, serve, lab):
        top = f"rate_per_minute = 3\n{KEYED}"
        daemon = serve(endpoint(lab), top=top, environ=KEYS)
        with daemon.client() as client:
            asked = [client.post(CHAT, json=PROMPT, headers=bearer()) for _ in range(4)]
            other = client.post(CHAT, json=PROMPT, headers=bearer(KEYS["TEST_KEY_B"]))
            turn = asked[0].headers["tidegate-turn"]
            interrupt = client.post(f"/v1/turns/{turn}/interrupt", headers=bearer())
            looked = client.get(f"/v1/turns/{turn}", headers=bearer())

        assert [each.status_code for each in asked] == [200, 200, 200, 429]
        assert 1 <= int(asked[3].headers["retry-after"]) <= 20
        assert asked[3].json()["error"]["code"] == "rate_limit_exceeded"
        assert (other.status_code, interrupt.status_code, looked.status_code) == (200, 200, 429)
        assert len(lab.requests) == 4

    @pytest.mark.parametrize("stream", [False, True])
    def test_full_queue_refuses_and_is_whole_afterwards(self, serve, stream):
        held = Answer([gate("go"), *chat.answer("Hello").steps], repeat=True)
        with Lab([held]) as lab:
            daemon = serve(endpoint(lab), top="max_running = 1\nmax_queued = 1")
            with daemon.client() as client:
                made = [client.post("/v1/turns", json=ASKED).json()["id"] for _ in range(2)]
                body = {**PROMPT, "stream": stream}
                refused = [client.post(CHAT, json=body) for _ in range(3)]
                # The same connection goes on to serve.
                states = [each["state"] for each in client.get("/v1/turns").json()["turns"]]
                interrupt = client.post(f"/v1/turns/{made[1]}/interrupt")
                lab.open("go")
                eventually(lambda: client.get(f"/v1/turns/{made[0]}").json()["ended_at"])
                taken = client.post(CHAT, json=body)

            assert {each.status_code for each in refused} == {429}
            assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
            assert states == ["queued", "running"]
            assert (interrupt.json()["state"], taken.status_code) == ("interrupted", 200)
            assert len(lab.requests) == 2

    def test_key_that_fills_the_queue_shuts_no_other_out(self, serve):
        held = Answer([gate("go"), *chat.answer("Hello").steps], repeat=True)
        hog, other = map(bearer, KEYS.values())
        with Lab([held]) as lab:
            top = f"{KEYED}\nmax_running = 1\nmax_queued = 2"
            daemon = serve(endpoint(lab), top=top, environ=KEYS)
            with daemon.client() as client:
                hogs = [client.post("/v1/turns", json=ASKED, headers=hog) for _ in range(4)]
                taken = client.post("/v1/turns", json=ASKED, headers=other)
                refused = [hogs.pop(), client.post(CHAT, json=PROMPT, headers=other)]
                lab.open("go")
                turn = f"/v1/turns/{taken.json()['id']}"
                eventually(lambda: client.get(turn, headers=other).json()["ended_at"])
                again = client.post(CHAT, json=PROMPT, headers=other)

            assert [each.status_code for each in (*hogs, taken)] == [202] * 4
            assert [each.status_code for each in refused] == [429] * 2
            assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
            assert again.status_code == 200


def test_nothing_of_what_is_said_is_in_the_log(serve):
    """Of prompts, answers, keys and headers, whatever goes wrong, at the default level."""
    said = "marker-of-an-answer"
    prompt = {**PROMPT, "messages": [{"role": "user", "content": "marker-of-a-prompt"}]}
    steps = [
        chat.text(said),
        chat.tool(0, id="c1", name="marker-of-a-tool", arguments='{"a": "marker'),
    ]
    failing = [
        Answer([*chat.answer(said).steps]),
        Answer([*steps, End.CUT]),
        Answer([*steps, chat.error("marker-of-an-error")]),
        Answer([*steps, End.RESET]),
        chat.error_answer(400, "marker-of-an-error"),
        chat.error_answer(401, "marker-of-an-error provider-key"),
        Answer([chat.delta({"content": 7, "marker": "marker"})]),
        Answer([], headers={"content-type": "text/html", "x-marker": "marker"}),
    ]
    with Lab(failing) as lab:
        policy = '[policy]\nretries = 0\n[endpoints.main.headers]\nx-mine = "marker-of-a-header"\n'
        daemon = serve(endpoint(lab), top=KEYED, environ=KEYS, policy=policy)
        headers = {**bearer(), "x-other": "marker-of-a-header"}
        with daemon.client() as client:
            for number in range(len(failing)):
                stream = number % 2 == 0
                client.post(CHAT, json={**prompt, "stream": stream}, headers=headers)
            client.post(CHAT, content=b'{"marker-of-a-body', headers=headers)
            client.post(CHAT, json={**prompt, "stream": "marker"}, headers=headers)
            client.post(CHAT, json=prompt, headers=bearer("marker-of-a-key"))
            client.post(
                "/v1/turns",
                json={"endpoint": "main", "payload": prompt, "x": "marker"},
                headers=headers,
            )
            client.get("/v1/turns?before=marker&state=marker", headers=headers)
            client.get("/v1/turns/turn_x?key=marker", headers=headers)
            client.get("/v1/models", headers={**headers, "host": "marker.example"})
            lab.add(Answer([chat.text(said), End.HOLD]))
            with Client(daemon.port) as leaving:
                leaving.ask("POST", CHAT, {**prompt, "stream": True}, headers).until(said.encode())
                leaving.leave("reset")
        assert daemon.end() == 0

    log = daemon.log.read_text()
    assert log.count("turn ended") == len(failing) + 1
    for secret in ("marker", "provider-key", *KEYS.values()):
        assert secret not in log, [line for line in log.splitlines() if secret in line]
    assert "Traceback" not in log
