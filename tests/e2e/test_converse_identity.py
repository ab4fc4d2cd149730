"""Who asks Bedrock, and where: signatures, keys, profiles, roles; and what stays secret."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

import tidegate as tg
from tests.e2e.converse_checks import model_of, signature_of
from tests.e2e.scripts import in_order
from tidegate.lab import Answer, Lab, converse


MODEL = "us.anthropic.claude-opus-4-6-v1:0"
ARN = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude/x y"
PLAIN = Answer.json(converse.completion({"text": "a"}))
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"


def prompt(model=MODEL, text="Hello"):
    return {"modelId": model, "messages": [{"role": "user", "content": [{"text": text}]}]}


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1, settings=tg.Settings(preload=("converse",))) as runtime:
        yield runtime


@pytest.fixture
def lab():
    with Lab(in_order(converse.answer("Hello"))) as lab:
        yield lab


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Nothing of the machine's own: keys and files are what a test says."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return tmp_path


def ask(runtime, lab, payload=None, *, region="eu-west-1", stream=True, **options):
    endpoint = tg.Endpoint.converse(region, lab.base, **options)
    return runtime.run(tg.Request(endpoint, payload or prompt(), stream=stream))


def signer(lab, at=-1):
    """Return key id, region and service of a request's signature, by default of the last."""
    credential = lab.requests[at].headers["authorization"].partition("Credential=")[2]
    key, _, region, service, _ = credential.partition(",")[0].split("/")
    return key, region, service


class TestSignature:
    @pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
    @pytest.mark.parametrize("model", ["plain", MODEL, ARN])
    def test_is_of_what_was_sent(self, runtime, model, stream):
        headers, query = {"X-Team": "tides  and gates"}, {"a b": "c/d", "e": "ü&"}
        with Lab([converse.answer("a") if stream else PLAIN]) as own:
            ask(runtime, own, prompt(model), headers=headers, query=query, stream=stream)
            [request] = own.requests

        sent, right = signature_of(request, SECRET)
        assert sent == right
        assert model_of(request) == model
        assert request.headers["x-team"].split() == ["tides", "and", "gates"]
        assert "x-team" in request.headers["authorization"]

    def test_is_of_this_very_body(self, runtime, lab):
        """The check would notice: another body has another signature."""
        ask(runtime, lab)
        request = lab.requests[0]
        object.__setattr__(request, "body", request.body + b" ")

        sent, right = signature_of(request, SECRET)
        assert sent != right

    def test_names_region_and_service(self, runtime, lab):
        ask(runtime, lab, region="ap-southeast-2")

        assert signer(lab) == ("AKIDENVIRONMENT", "ap-southeast-2", "bedrock")

    def test_session_token_goes_along(self, runtime, lab, monkeypatch):
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-a-session")
        ask(runtime, lab)

        request = lab.requests[0]
        assert request.headers["x-amz-security-token"] == "token-of-a-session"
        assert len(set(signature_of(request, SECRET))) == 1

    def test_bytes_are_sent_as_they_are_in_the_payload(self, runtime, lab):
        picture = {"image": {"format": "png", "source": {"bytes": b"\x00\x01\xff"}}}
        nested = {"toolResult": {"toolUseId": "t", "content": [picture]}}
        encoded = {"format": "png", "source": {"bytes": base64.b64encode(b"\x00\x01\xff").decode()}}
        message = {"role": "user", "content": [picture, nested, {"image": encoded}]}
        ask(runtime, lab, {"modelId": MODEL, "messages": [message]})

        [sent] = lab.requests[0].json()["messages"]
        assert sent["content"][0]["image"] == encoded
        assert sent["content"][1]["toolResult"]["content"][0]["image"] == encoded
        assert sent["content"][2]["image"] == encoded


class TestKeys:
    def test_given_key_is_a_bearer_token_and_nothing_is_signed(self, runtime, lab):
        ask(runtime, lab, api_key="key-of-bedrock")

        assert lab.requests[0].headers["authorization"] == "Bearer key-of-bedrock"

    def test_key_in_the_environment_is_read_at_each_start(self, runtime, lab, monkeypatch):
        for key in ("first-key", "second-key"):
            monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", key)
            ask(runtime, lab)
        monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
        ask(runtime, lab)

        sent = [request.headers["authorization"] for request in lab.requests]
        assert sent[:2] == ["Bearer first-key", "Bearer second-key"]
        assert sent[2].startswith("AWS4-HMAC-SHA256 Credential=AKIDENVIRONMENT/")

    def test_header_of_ones_own_stands(self, runtime, lab):
        ask(runtime, lab, headers={"authorization": "Basic abc"})

        assert lab.requests[0].headers["authorization"] == "Basic abc"

    def test_credentials_in_the_environment_are_read_at_each_start(self, runtime, lab, monkeypatch):
        ask(runtime, lab)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOTHER")
        ask(runtime, lab)

        assert signer(lab)[0] == "AKIDOTHER"

    def test_no_credentials_at_all_are_told(self, runtime, lab, monkeypatch):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(tg.AuthRejected, match="set AWS_ACCESS_KEY_ID") as raised:
            ask(runtime, lab)

        assert raised.value.failure.reason == "credentials"
        assert lab.requests == []

    @pytest.mark.parametrize("secret", [SECRET, "token-of-a-session", "key-of-bedrock"])
    def test_secrets_are_masked_in_what_a_provider_says(self, runtime, monkeypatch, secret):
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-a-session")
        options = {"api_key": secret} if secret == "key-of-bedrock" else {}
        refusals = [converse.error_answer(400, "ValidationException", f"bad {secret}")]
        with Lab(refusals) as own, pytest.raises(tg.BadRequest) as raised:
            ask(runtime, own, **options)

        assert secret not in raised.value.failure.detail
        assert "bad ***" in raised.value.failure.detail


PROFILES = """
[profile team]
aws_access_key_id = AKIDTEAM
aws_secret_access_key = team-secret
region = sa-east-1
"""
KEYS = """
[team]
aws_access_key_id = AKIDLATER
aws_secret_access_key = later-secret
"""
ROLE = "arn:aws:iam::123456789012:role/reader"


def session_of_role(key="ASIAROLE"):
    ends = datetime.now(UTC) + timedelta(hours=1)
    document = f"""
    <AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
      <AssumedRoleUser><Arn>{ROLE}</Arn><AssumedRoleId>r:tidegate</AssumedRoleId></AssumedRoleUser>
      <Credentials>
        <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey>
        <SessionToken>role-token</SessionToken><Expiration>{ends:%Y-%m-%dT%H:%M:%SZ}</Expiration>
      </Credentials></AssumeRoleResult></AssumeRoleResponse>"""
    return Answer.whole(document.encode(), "text/xml")


def metadata_that_comes_up():
    """Return a machine's own service for keys, which knows of none when it is asked first."""
    ends = datetime.now(UTC) + timedelta(hours=1)
    keys = {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": "ASIAMACHINE",
        "SecretAccessKey": "machine-secret",
        "Token": "machine-token",
        "LastUpdated": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "Expiration": f"{ends:%Y-%m-%dT%H:%M:%SZ}",
    }
    roles = iter([Answer.whole(b"", "text/plain", 404)])

    def answer(request):
        if request.path == "/latest/api/token":
            return Answer.whole(b"a-token", "text/plain")
        if request.path.endswith("/security-credentials/"):
            return next(roles, Answer.whole(b"reader", "text/plain"))
        return Answer.json(keys)

    return answer


class TestProfilesAndRoles:
    def test_profile_signs_and_gives_the_region(self, runtime, lab, environment, monkeypatch):
        (environment / "config").write_text(PROFILES)
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "key-of-somebody-else")
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        ask(runtime, lab, region=None, profile="team")

        assert signer(lab) == ("AKIDTEAM", "sa-east-1", "bedrock")
        assert len(set(signature_of(lab.requests[0], "team-secret"))) == 1

    @pytest.mark.parametrize("named", [True, False])
    def test_keys_in_files_are_read_anew_once_they_have_changed(
        self, lab, environment, monkeypatch, named
    ):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        if not named:
            for variable in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
                monkeypatch.delenv(variable)
        monkeypatch.setenv("HOME", str(environment))
        folder = environment if named else environment / ".aws"
        folder.mkdir(exist_ok=True)
        config, credentials = folder / "config", folder / "credentials"
        with tg.Runtime(workers=1) as runtime:  # which has that home
            config.write_text(PROFILES)
            for _ in range(2):
                ask(runtime, lab, region=None, profile="team")
            credentials.write_text(KEYS)
            ask(runtime, lab, region=None, profile="team")
            credentials.write_text(KEYS.replace("AKIDLATER", "AKIDLATEST"))
            ask(runtime, lab, region=None, profile="team")
            config.write_text(PROFILES.replace("sa-east-1", "eu-north-1"))
            ask(runtime, lab, region=None, profile="team")
            credentials.unlink()
            config.unlink()
            with pytest.raises(tg.AuthRejected, match="could not be found"):
                ask(runtime, lab, region=None, profile="team")

        signers = [signer(lab, at) for at in range(len(lab.requests))]
        assert [key for key, _, _ in signers] == [
            *["AKIDTEAM"] * 2,
            "AKIDLATER",
            *["AKIDLATEST"] * 2,
        ]
        assert [region for _, region, _ in signers] == [*["sa-east-1"] * 4, "eu-north-1"]
        assert lab.connections_count == 4  # a client of its own, unless nothing has changed

    def test_profile_that_is_not_there_is_told(self, runtime, lab):
        with pytest.raises(tg.AuthRejected, match=r"profile \(nobody\) could not be found"):
            ask(runtime, lab, profile="nobody")

        assert lab.requests == []

    def test_no_region_is_told(self, runtime, lab):
        with pytest.raises(tg.BadRequest, match="give region to the endpoint") as raised:
            ask(runtime, lab, region=None)

        assert raised.value.failure.reason == "region"

    def test_region_of_the_environment(self, runtime, lab, monkeypatch):
        monkeypatch.setenv("AWS_DEFAULT_REGION", "ca-central-1")
        ask(runtime, lab, region=None)

        assert signer(lab)[1] == "ca-central-1"

    def test_address_of_the_environment(self, runtime, lab, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", lab.base)
        endpoint = tg.Endpoint.converse("eu-west-1")
        assert runtime.run(tg.Request(endpoint, prompt())).text == "Hello"

    def test_role_is_assumed_once_and_signs(self, runtime, lab, monkeypatch):
        with Lab([session_of_role()]) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.base)
            for _ in range(2):
                ask(runtime, lab, role_arn=ROLE)

            [asked] = sts.requests
        assert b"RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Freader" in asked.body
        assert "Credential=AKIDENVIRONMENT/" in asked.headers["authorization"]
        assert signer(lab)[0] == "ASIAROLE"
        assert lab.requests[0].headers["x-amz-security-token"] == "role-token"
        assert len(set(signature_of(lab.requests[1], "role-secret"))) == 1

    def test_keys_of_the_machine_are_asked_for_again_by_the_next_turn(
        self, runtime, lab, monkeypatch
    ):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        with Lab(route=metadata_that_comes_up()) as machine:
            monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", machine.base)
            with pytest.raises(tg.AuthRejected, match="no AWS credentials"):
                ask(runtime, lab)
            assert lab.requests == []
            ask(runtime, lab)

        assert signer(lab)[0] == "ASIAMACHINE"

    def test_role_that_may_not_be_assumed_is_told_and_asked_for_anew_by_the_next_turn(
        self, runtime, lab, monkeypatch
    ):
        error = (
            b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>"
            b"<Message>not authorized to perform sts:AssumeRole</Message></Error></ErrorResponse>"
        )
        with Lab([Answer.whole(error, "text/xml", 403), session_of_role("ASIALATER")]) as sts:
            monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.base)
            with pytest.raises(tg.AuthRejected, match="sts:AssumeRole") as raised:
                ask(runtime, lab, role_arn=ROLE)
            assert lab.requests == []
            ask(runtime, lab, role_arn=ROLE)

        assert raised.value.failure.reason == "credentials"
        assert signer(lab)[0] == "ASIALATER"


def test_redirect_within_the_host_is_followed(runtime):
    away = Answer((), status=307, headers={"location": "/elsewhere", "content-length": "0"})
    with Lab([away, PLAIN]) as lab:
        assert ask(runtime, lab).text == "a"

        assert [each.path for each in lab.requests][1:] == ["/elsewhere"]
        assert lab.requests[0].body == lab.requests[1].body


def test_redirect_to_another_host_is_refused(runtime):
    with Lab([PLAIN]) as other:
        head = {"location": f"{other.base}/model", "content-length": "0"}
        with Lab([Answer((), status=307, headers=head)]) as lab:
            with pytest.raises(tg.BadRequest, match="set endpoint_url to") as raised:
                ask(runtime, lab, headers={"x-gateway-pass": SECRET})
            assert (len(lab.requests), other.requests) == (1, [])

    assert raised.value.failure.reason == "redirect"
    assert other.base in str(raised.value)


@pytest.mark.parametrize(("status", "place"), [(302, None), (304, None), (307, "")])
def test_redirect_to_nowhere_is_a_failure_that_names_the_status(runtime, status, place):
    headers = {"content-length": "0"} | ({} if place is None else {"location": place})
    with Lab([Answer((), status=status, headers=headers)]) as lab:
        with pytest.raises(tg.BadRequest, match=f"HTTP {status} is no answer") as raised:
            ask(runtime, lab)
        assert len(lab.requests) == 1

    failure = raised.value.failure
    assert (failure.reason, failure.status, failure.retryable) == ("redirect", status, False)


def test_cookies_are_ones_own_or_none(runtime):
    given = {"set-cookie": "session=of-another; Path=/"}
    away = Answer((), status=307, headers={"location": "/there", "content-length": "0", **given})
    answer = Answer(PLAIN.steps, headers={**PLAIN.headers, **given})
    with Lab([answer, answer, away, answer]) as lab:
        for headers in ({}, {"x-user": "b"}, {"cookie": "own=1"}):
            ask(runtime, lab, headers=headers)

        assert [each.headers.get("cookie") for each in lab.requests] == [
            None,
            None,
            "own=1",
            "own=1",
        ]
