"""From a file, the environment and the command line to one configuration, or all that is wrong."""

import os
import pickle
import sys

import pytest

from tidegate.daemon.config.disconnect import CONTINUE, OnDisconnect
from tidegate.daemon.config.load import InvalidConfig, load
from tidegate.daemon.config.model import DaemonConfig
from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs


ISSUED = """\
listen = "127.0.0.1:8765"
journal = "tidegate.db"            # or "none"
heartbeat_s = 15
on_disconnect = "continue:30"
keys = ["env:TIDEGATE_KEY"]

[endpoints.main]
wire = "chat"
base_url = "https://api.example/v1"
api_key = "env:OPENAI_API_KEY"
models = ["gpt-*", "o*"]
[endpoints.main.policy]
retries = 2
backoff_s = [1, 2]

[endpoints.here]
wire = "local"

[policy]
stale_after_s = 120
deadline_s = inf
"""


@pytest.fixture
def loaded(tmp_path):
    """Load what a file says, in a folder where nothing else is."""

    def make(text=None, *, name="tidegate.toml", options=None, **environ):
        (tmp_path / "user").mkdir(exist_ok=True)
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / name).write_bytes(content)
        return load(
            None if name == "tidegate.toml" else name,
            environ=environ,
            cwd=tmp_path,
            overrides=options,
            user_folder=tmp_path / "user",
        )

    return make


@pytest.fixture
def problems(loaded):
    """What is wrong, line by line."""

    def make(text=None, **given):
        with pytest.raises(InvalidConfig) as raised:
            loaded(text, **given)
        return list(raised.value.problems)

    return make


def test_nothing_at_all_is_the_local_model_on_loopback(loaded):
    config, origins, path, notices = loaded()

    assert config == DaemonConfig()
    assert config.is_loopback
    assert [(name, each.wire) for name, each in config.endpoints.items()] == [("local", "local")]
    assert (path, notices) == (None, ())
    assert set(origins.values()) == {"built-in"}


def test_file_is_read_with_the_line_of_each_value(loaded, tmp_path):
    config, origins, path, _ = loaded(ISSUED)

    assert path == tmp_path / "tidegate.toml"
    assert config.on_disconnect == OnDisconnect(kind="continue", seconds=30.0)
    assert config.keys == ("env:TIDEGATE_KEY",)
    assert list(config.endpoints) == ["main", "here"]
    assert config.endpoints["main"].models == ("gpt-*", "o*")
    assert config.endpoints["main"].policy.backoff_s == (1, 2)
    assert config.policy.stale_after_s == 120
    assert origins["heartbeat_s"] == "tidegate.toml:3"
    assert origins["drain_s"] == "built-in"
    assert origins["endpoints.main.policy.retries"] == "tidegate.toml:13"
    assert origins["endpoints.here.models"] == "built-in"


def test_file_without_endpoints_has_the_local_model(loaded):
    assert list(loaded("heartbeat_s = 3\n[endpoints]").config.endpoints) == ["local"]


def test_file_that_was_named_comes_first_then_this_folder_then_the_users(loaded, tmp_path):
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "tidegate.toml").write_text("heartbeat_s = 1")
    assert loaded().config.heartbeat_s == 1
    assert loaded().origins["heartbeat_s"] == f"{tmp_path}/user/tidegate.toml:1"
    assert loaded("heartbeat_s = 2").config.heartbeat_s == 2
    assert loaded("heartbeat_s = 3", name="other.toml").config.heartbeat_s == 3
    assert loaded(name="other.toml").origins["heartbeat_s"] == "other.toml:1"


def test_users_folder_is_the_platforms(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tidegate").mkdir()
    (tmp_path / "tidegate" / "tidegate.toml").write_text("heartbeat_s = 7")

    assert load(cwd=tmp_path, environ={}).config.heartbeat_s == 7


def test_variable_is_stronger_than_the_file_and_an_option_than_both(loaded):
    text = "heartbeat_s = 1\ndrain_s = 1\nlisten = '127.0.0.1:1'"
    environ = {"TIDEGATE_DRAIN_S": "2", "TIDEGATE_LISTEN": "127.0.0.1:2", "TIDEGATE_KEYS": " "}
    config, origins, _, _ = loaded(text, options={"listen": "[::1]:3", "journal": None}, **environ)

    assert (config.heartbeat_s, config.drain_s, config.listen) == (1, 2, "[::1]:3")
    assert origins["drain_s"] == "TIDEGATE_DRAIN_S"
    assert origins["listen"] == "--listen"
    assert origins["journal"] == "built-in"
    assert origins["keys"] == "built-in"


def test_variables_say_lists_flags_numbers_and_nested_values(loaded):
    config = loaded(
        "[endpoints.'my-gpt']\nwire = 'chat'",
        TIDEGATE_KEYS="env:A, file:/b",
        TIDEGATE_NOTICES="off",
        TIDEGATE_MAX_QUEUED="0",
        TIDEGATE_ON_DISCONNECT="continue",
        TIDEGATE_PRELOAD="chat,messages",
        TIDEGATE_ENDPOINTS__MY_GPT__API_KEY="env:C",
        TIDEGATE_ENDPOINTS__MY_GPT__VERIFY="false",
        TIDEGATE_ENDPOINTS__MY_GPT__POLICY__BACKOFF_S="1,2",
        TIDEGATE_ENDPOINTS__NEW__WIRE="local",
    ).config

    assert config.keys == ("env:A", "file:/b")
    assert (config.notices, config.max_queued, config.on_disconnect) == (False, 0, CONTINUE)
    assert config.settings.preload == ("chat", "messages")
    assert config.endpoints["my-gpt"].api_key == "env:C"
    assert config.endpoints["my-gpt"].verify is False
    assert config.endpoints["my-gpt"].policy.backoff_s == (1, 2)
    assert config.endpoints["new"].wire == "local"


ALL_WRONG = """\
liste = "x"
heartbeat_s = 0
keys = [
  "sk-very-secret",
]
retries = 3
[endpoints.main]
wire = "chat"
region = "eu"
api_kye = "sk-very-secret"
drain_s = 4
retries = 1
[endpoints.b]
base_url = "nowhere"
api_key = "sk-very-secret"
[endpoints.c.policy]
retries = "x"
stale_after = 3
[endpoints.d]
wire = "chatt"
[endpoints.e]
[polcy]
x = 3
"""


def test_all_that_is_wrong_is_said_at_once_and_by_its_place(problems):
    wanted = "give 'env:NAME' or 'file:PATH', for a key itself has no place in a configuration"
    wires = "give one of chat, responses, messages, converse, local"

    assert problems(
        ALL_WRONG, TIDEGATE_LOG_LEVEL="loud", TIDEGATE_STREAM_RETRIES="x", options={"drain_s": -1}
    ) == [
        "tidegate.toml:1: the top of the file has no key 'liste': did you mean 'listen'?",
        "tidegate.toml:2: heartbeat_s=0: give a number of seconds above 0",
        (
            "tidegate.toml:3: keys: give a list of 'env:NAME' or 'file:PATH', never the keys "
            "themselves"
        ),
        "tidegate.toml:6: the top of the file has no key 'retries': it belongs in [policy]",
        "tidegate.toml:9: [endpoints.main] region means nothing on the wire 'chat': leave it out",
        "tidegate.toml:10: [endpoints.main] has no key 'api_kye': did you mean 'api_key'?",
        (
            "tidegate.toml:11: [endpoints.main] has no key 'drain_s': it belongs at the top of the "
            "file, above the first [table]"
        ),
        (
            "tidegate.toml:12: [endpoints.main] has no key 'retries': it belongs in "
            "[endpoints.main.policy]"
        ),
        (
            "tidegate.toml:14: [endpoints.b] base_url='nowhere': give an http:// or https:// "
            "address with a host, such as http://127.0.0.1:8000/v1"
        ),
        f"tidegate.toml:15: [endpoints.b] api_key: {wanted}",
        (
            "tidegate.toml:17: [endpoints.c.policy] retries='x': give a whole number of at least "
            "0, and at most 9007199254740992"
        ),
        (
            "tidegate.toml:18: [endpoints.c.policy] has no key 'stale_after': did you mean "
            "'stale_after_s'?"
        ),
        f"tidegate.toml:20: [endpoints.d] wire='chatt': {wires}",
        f"tidegate.toml:21: [endpoints.e] wire is missing: {wires}",
        "tidegate.toml:22: the top of the file has no key 'polcy': did you mean 'policy'?",
        "TIDEGATE_LOG_LEVEL='loud': give one of debug, info, warning, error, or unset it",
        (
            "TIDEGATE_STREAM_RETRIES='x': give a whole number of at least 0, and at most "
            "9007199254740992, or unset it"
        ),
        "--drain-s=-1: give a number of seconds of at least 0",
    ]


def test_errors_make_one_text_and_pickle(loaded):
    with pytest.raises(InvalidConfig, match=r"^tidegate\.toml:1: drain_s=true: give a number"):
        loaded("drain_s = true")
    with pytest.raises(InvalidConfig, match=r"^2 errors in the configuration:\n  tide") as raised:
        loaded("drain_s = true\nworkers = 0")
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.problems) == (str(raised.value), raised.value.problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nb = ]", "tidegate.toml: is no TOML: Invalid value (at line 2, column 5)"),
        (b"\n# \xff", "tidegate.toml:2: is not UTF-8"),
        ("x = " + "[" * 5000, "tidegate.toml: is no TOML: "),
        ("x = 1" * 300_000, "tidegate.toml: cannot be read (it has more than 1048576 bytes)"),
        ("endpoints = 3", "tidegate.toml:1: endpoints is a table: give it as [endpoints.main]"),
        ("policy = 3", "tidegate.toml:1: policy is a table: give it as [policy]"),
        (
            "[endpoints]\nmain = 3",
            "tidegate.toml:2: [endpoints] main is a table: give it as [endpoints.main]",
        ),
        ("[endpoints.' ']", "tidegate.toml:1: endpoints: ' ' cannot be a name"),
        (
            "[[endpoints]]\nwire = 'chat'",
            "tidegate.toml:1: endpoints is a table: give it as [endpoints.main]",
        ),
        (
            "listen = '0.0.0.0:80'",
            "tidegate.toml:1: listen='0.0.0.0:80' can be reached from other machines",
        ),
        (
            "[endpoints.a]\nwire = 'local'\nheaders = {a = 'b'}",
            "tidegate.toml:3: [endpoints.a] headers means nothing on the wire 'local'",
        ),
        (
            "[endpoints.a]\nwire = 'chat'\nlocal_model = 'smollm2'",
            (
                "tidegate.toml:3: [endpoints.a] local_model means nothing on the wire 'chat': say "
                "wire = 'local'"
            ),
        ),
        (
            "[endpoints.a]\nwire = 'chat'\nheaders = {'a b' = 'sk'}",
            "tidegate.toml:3: [endpoints.a] headers: 'a b' cannot be the name of a header",
        ),
        (
            "[policy]\nbackoff_s = 1",
            (
                "tidegate.toml:2: [policy] backoff_s=1: give seconds of at least 0, as a list such "
                "as [1, 2, 4]"
            ),
        ),
        (
            "[endpoints.a]\nwire = 'chat'\nquery = {key = 'env:KEY'}",
            "tidegate.toml:3: [endpoints.a] query['key'] would be sent as it stands",
        ),
        ("zzz = 1", "tidegate.toml:1: the top of the file has no key 'zzz': it may have listen, "),
        (
            "base_url = 'x'",
            "tidegate.toml:1: the top of the file has no key 'base_url': it belongs in a table",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(problems, text, problem):
    [said] = problems(text)
    assert said.startswith(problem)


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("TIDEGATE_KEYS", "sk-1", "TIDEGATE_KEYS: give a list of 'env:NAME' or 'file:PATH'"),
        ("TIDEGATE_POLICY__RETRIES", "3", "TIDEGATE_POLICY__RETRIES is no setting: set TIDEGATE_S"),
        ("TIDEGATE_ENDPOINTS__A", "3", "TIDEGATE_ENDPOINTS__A is no setting: name it TIDEGATE_E"),
        ("TIDEGATE_ENDPOINTS__A__B__C", "3", "TIDEGATE_ENDPOINTS__A__B__C is no setting"),
        ("TIDEGATE_ENDPOINTS__A__API_KYE", "3", "TIDEGATE_ENDPOINTS__A__API_KYE: [endpoints.a] ha"),
        ("TIDEGATE_ENDPOINTS__A__HEADERS", "a", "TIDEGATE_ENDPOINTS__A__HEADERS: give a table of"),
        ("TIDEGATE_ENDPOINTS__A__REGION", "x", "TIDEGATE_ENDPOINTS__A__REGION: wire is missing"),
        ("TIDEGATE_LISTEN", ":80", "TIDEGATE_LISTEN=':80': give HOST:PORT, such as 127.0.0.1:8765"),
        ("TIDEGATE_NOTICES", "maybe", "TIDEGATE_NOTICES='maybe': give true or false, or unset it"),
    ],
)
def test_variable_that_cannot_be_used_is_named(problems, variable, text, problem):
    [said] = problems(**{variable: text})
    assert said.startswith(problem)


def test_file_that_is_named_must_be_there(problems, tmp_path):
    assert problems(name="none.toml") == ["none.toml: cannot be read (No such file or directory)"]
    assert problems(name="~nobody-of-that-name/a.toml") == [
        "~nobody-of-that-name/a.toml: cannot be read (Could not determine home directory.)"
    ]
    (tmp_path / "tidegate.toml").mkdir()
    assert problems() == ["tidegate.toml: cannot be read (Is a directory)"]


def test_pipe_is_no_file_and_is_not_waited_for(problems, tmp_path):
    os.mkfifo(tmp_path / "tidegate.toml")

    assert problems() == ["tidegate.toml: cannot be read (it is no regular file)"]


def test_folder_that_is_gone_has_no_file(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(InvalidConfig, match=r"^tidegate.toml: cannot be read \(No such file"):
        load(environ={}, user_folder=tmp_path)


def test_variables_that_look_like_ours_are_noticed_and_others_are_not(loaded):
    notices = loaded(
        "keys = ['env:TIDEGATE_KEY']\nlisten = '0.0.0.0:1'",
        TIDEGATE_KEY="x",
        TIDEGATE_LISTN="x",
        TIDEGATE_URL="http://127.0.0.1:1",
        TIDEGATE_PORT="tcp://10.0.0.1:80",
        TIDEGATE_SERVICE_HOST="10.0.0.1",
        TIDEGATE_STREAM_RETRIES="1",
        TIDEGATE_CACHE_DIR="/tmp",
    ).notices

    assert notices == ("TIDEGATE_LISTN is set and nobody reads it: did you mean TIDEGATE_LISTEN?",)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("TIDEGATE_RETRYS", "TIDEGATE_RETRIES"),
        ("TIDEGATE_STALE_TIMEOUT", "TIDEGATE_STREAM_STALE_TIMEOUT"),
        ("TIDEGATE_STALE_AFTER", "TIDEGATE_STALE_AFTER_S"),
        ("TIDEGATE_CODEX_TTFB_TIMEOUT", "TIDEGATE_CODEX_TTFB_TIMEOUT_SECONDS"),
        ("TIDEGATE_START_METHD", "TIDEGATE_START_METHOD"),
        ("TIDEGATE_ENDPOINT__MAIN__API_KEY", "TIDEGATE_ENDPOINTS__MAIN__API_KEY"),
    ],
)
def test_name_that_was_meant_is_said(loaded, variable, meant):
    said = f"{variable} is set and nobody reads it: did you mean {meant}?"
    assert loaded("", **{variable: "1"}).notices == (said,)


@pytest.mark.parametrize(
    "variable",
    [
        *knobs.VARIABLES,
        "TIDEGATE_KEY",
        "TIDEGATE_START_METHOD",
        "TIDEGATE_SERVICE_PORT",
        "TIDEGATE_SERVICE_PORT_HTTP",
        "TIDEGATE_PORT_8765_TCP",
        "TIDEGATE_PORT_8765_TCP_ADDR",
        "TIDEGATE_PORT_8765_TCP_PORT",
        "TIDEGATE_PORT_8765_TCP_PROTO",
    ],
)
def test_what_is_read_and_what_systems_set_by_themselves_is_no_slip(loaded, variable):
    text = {"TIDEGATE_AFTER_VISIBLE_TEXT": "stop"}.get(variable, "1")
    assert loaded("", **{variable: text}).notices == ()


@pytest.mark.parametrize("variable", knobs.VARIABLES)
def test_variable_that_no_turn_can_start_with_is_refused(problems, variable):
    [said] = problems(**{variable: "-x"})
    assert said.startswith(f"{variable}='-x': give ")


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "platformdirs", None)

    with pytest.raises(ConfigurationError, match=r"^the daemon needs .* 'tidegate\[daemon\]'"):
        load(cwd=tmp_path, environ={})


def test_converse_without_a_region_is_refused_where_it_begins(problems, loaded):
    nowhere = {"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    text = '[endpoints.here]\nwire = "local"\n\n[endpoints.rock]\nwire = "converse"\n'

    [problem] = problems(text, **nowhere)
    assert problem.startswith(
        "tidegate.toml:4: [endpoints.rock] the wire 'converse' has no region: give region, such"
    )
    [problem] = problems(f'{text}profile = "team"\n', **nowhere)
    assert problem.startswith("tidegate.toml:6: [endpoints.rock] profile='team': there is none in")
    loaded(f'{text}region = "eu-west-1"\n', **nowhere)
    loaded(text, AWS_DEFAULT_REGION="eu-west-1", **nowhere)


def test_address_with_the_path_of_a_request_is_refused_in_its_line(problems):
    text = '[endpoints.main]\nwire = "chat"\nbase_url = "http://host/v1/chat/completions"\n'

    [problem] = problems(text)
    assert problem == (
        "tidegate.toml:3: [endpoints.main] base_url='http://host/v1/chat/completions' ends in the "
        "path of a request, which is added to it: give 'http://host/v1'"
    )


def test_variable_of_a_header_is_no_misspelling(loaded):
    text = '[endpoints.main]\nwire = "chat"\nheaders.authorization = "env:TIDEGATE_KEYZ"\n'

    assert loaded(text, TIDEGATE_KEYZ="x").notices == ()
