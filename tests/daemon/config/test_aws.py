"""Where AWS is: what we find must be what botocore finds."""

import os

import pytest
from botocore.exceptions import ConfigParseError, ProfileNotFound
from botocore.session import Session

from tidegate.daemon.config.aws import check_profile, check_region
from tidegate.errors import ConfigurationError


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Return the environment of a machine with these files, in which botocore looks too."""

    def make(config="", credentials="", **variables):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws/config").write_text(config)
        (tmp_path / ".aws/credentials").write_text(credentials)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return variables

    return make


def passes(check, *given):
    try:
        check(*given)
    except ConfigurationError:
        return False
    return True


TEAM = "[profile team]\nregion = eu-west-1\n"
QUOTED = '[profile "the team"]\nregion = eu-west-1\n'
DEFAULT = "[default]\nregion = eu-west-1\n"


@pytest.mark.parametrize(
    ("files", "variables", "profile"),
    [
        ((), {}, None),
        ((DEFAULT,), {}, None),
        ((DEFAULT,), {}, "team"),
        ((TEAM,), {}, None),
        ((TEAM,), {}, "team"),
        ((TEAM,), {"AWS_PROFILE": "team"}, None),
        ((TEAM,), {"AWS_DEFAULT_PROFILE": "team", "AWS_PROFILE": "other"}, None),
        ((TEAM,), {"AWS_PROFILE": "other"}, "team"),
        ((TEAM,), {"AWS_PROFILE": "other"}, None),
        ((QUOTED,), {}, "the team"),
        (("[team]\nregion = eu-west-1\n",), {}, "team"),
        (("[profile 'team]\nregion = eu-west-1\n",), {}, "team"),
        (("", "[team]\nregion = eu-west-1\n"), {}, "team"),
        ((TEAM, "[team]\naws_access_key_id = a\n"), {}, "team"),
        (("[profile team]\noutput = json\n",), {}, "team"),
        (("[DEFAULT]\nregion = eu-west-1\n[profile team]\n",), {}, "team"),
        ((), {"AWS_DEFAULT_REGION": "eu-west-1"}, None),
        ((DEFAULT,), {"AWS_DEFAULT_REGION": ""}, None),
        ((), {"AWS_REGION": "eu-west-1"}, None),
        ((DEFAULT,), {"AWS_CONFIG_FILE": "/none"}, None),
        ((DEFAULT,), {"AWS_CONFIG_FILE": "$HOME/.aws/config"}, None),
        (("", DEFAULT), {"AWS_SHARED_CREDENTIALS_FILE": "~/none"}, None),
        (("no section",), {}, None),
        (("[default]\nregion = a\nregion = b\n",), {}, None),
    ],
)
def test_region_and_profile_are_found_where_botocore_finds_them(at, files, variables, profile):
    environ = at(*files, **variables)
    session = Session(profile=profile)
    try:
        region, is_there = session.get_config_variable("region"), True
        session.get_scoped_config()
    except (ProfileNotFound, ConfigParseError):
        region, is_there = None, False

    assert passes(check_region, None, profile, environ) is bool(region)
    assert passes(check_profile, profile, environ) is is_there


def test_region_of_the_endpoint_needs_no_other(at):
    check_region("eu-west-1", "nobody", at("no section"))


def test_what_is_missing_is_said_with_the_way_out(at):
    environ = at(TEAM, AWS_REGION="eu-west-1")

    with pytest.raises(ConfigurationError) as raised:
        check_region(None, None, environ)
    assert str(raised.value) == (
        "the wire 'converse' has no region: give region, such as 'eu-west-1', or set "
        "AWS_DEFAULT_REGION (AWS_REGION is not read), or give a region to the profile in AWS's "
        "own files"
    )
    with pytest.raises(ConfigurationError) as raised:
        check_region(None, "nobody", environ)
    assert str(raised.value) == (
        "profile='nobody': there is none in '~/.aws/config' and '~/.aws/credentials': name "
        "another one"
    )


@pytest.mark.parametrize("region", ["eu west 1", "EU-WEST-1", "evil.test/#"])
def test_region_that_can_be_none_is_refused_wherever_it_is_said(at, region):
    environ = at(f"[profile team]\nregion = {region}\n", AWS_PROFILE="team")

    with pytest.raises(ConfigurationError) as raised:
        check_region(None, None, environ)
    assert str(raised.value) == (
        f"the AWS profile's region={region!r}: give a name such as 'eu-west-1'"
    )
    with pytest.raises(ConfigurationError, match=r"^AWS_DEFAULT_REGION='a b': give a name"):
        check_region(None, None, {**environ, "AWS_DEFAULT_REGION": "a b"})
    check_region("eu-west-1", None, environ)


def test_pipe_is_no_file_of_aws_and_is_not_waited_for(at, tmp_path):
    environ = at()
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ConfigurationError, match="has no region"):
        check_region(None, None, {**environ, "AWS_CONFIG_FILE": str(tmp_path / "pipe")})


def test_file_that_is_none_of_aws_is_said_and_not_shown(at):
    with pytest.raises(ConfigurationError) as raised:
        check_region(None, None, at("aws_secret_access_key = very-secret"))

    assert str(raised.value) == (
        "AWS's own file '~/.aws/config' cannot be read as one (MissingSectionHeaderError): mend it"
    )
