"""What is said about a configuration that can be used."""

import pytest

from tidegate.daemon.config.check import explain
from tidegate.daemon.config.load import InvalidConfig, load


@pytest.fixture
def explained(tmp_path):
    """Explain what a file says."""

    def make(text, **environ):
        (tmp_path / "tidegate.toml").write_text(text)
        environ = {"TIDEGATE_CACHE_DIR": str(tmp_path)} | environ
        loaded = load(environ=environ, cwd=tmp_path, user_folder=tmp_path)
        return explain(loaded, environ)

    return make


def rows(report):
    return {row.key: (row.value, row.origin) for row in report.rows}


def test_each_value_is_told_with_its_origin_and_its_meaning(explained):
    report = explained(
        """
        heartbeat_s = 0.5
        workers = 2
        notices = false
        keys = ["env:A", "file:/none"]
        [endpoints.main]
        wire = "chat"
        base_url = "http://127.0.0.1:1/v1"
        models = ["a", "b*"]
        on_disconnect = "continue:3"
        policy.backoff_s = [1, 2.5]
        [endpoints.here]
        wire = "local"
        [policy]
        deadline_s = inf
        """,
        TIDEGATE_DRAIN_S="60",
        TIDEGATE_STREAM_RETRIES="4",
    )

    told = rows(report)
    assert told["heartbeat_s"] == ("0.5", "tidegate.toml:2")
    assert told["workers"] == ("2", "tidegate.toml:3")
    assert told["notices"] == ("false", "tidegate.toml:4")
    assert told["keys"] == ("env:A, file:/none", "tidegate.toml:5")
    assert told["hosts"] == ("-", "built-in")
    assert told["drain_s"] == ("60", "TIDEGATE_DRAIN_S")
    assert told["on_disconnect"] == ("interrupt", "built-in")
    assert told["journal_bytes_max"] == ("1073741824", "built-in")
    assert {key: each for key, each in told.items() if key.startswith(("endpoints", "policy"))} == {
        "endpoints.main.wire": ("chat", "tidegate.toml:7"),
        "endpoints.main.models": ("a, b*", "tidegate.toml:9"),
        "endpoints.main.base_url": ("http://127.0.0.1:1/v1", "tidegate.toml:8"),
        "endpoints.main.on_disconnect": ("continue:3", "tidegate.toml:10"),
        "endpoints.main.policy.backoff_s": ("1, 2.5", "tidegate.toml:11"),
        "endpoints.here.wire": ("local", "tidegate.toml:13"),
        "endpoints.here.models": ("*", "built-in"),
        "endpoints.here.local_model": ("smollm2", "built-in"),
        "policy.deadline_s": ("inf", "tidegate.toml:15"),
        "policy.retries": ("4", "TIDEGATE_STREAM_RETRIES"),
    }
    assert all(row.meaning for row in report.rows)


def test_what_is_referred_to_and_not_there_is_noted(explained):
    report = explained(
        """
        keys = ["env:TIDEGATE_KEY", "file:/none"]
        [endpoints.a]
        wire = "chat"
        models = ["a"]
        [endpoints.b]
        wire = "messages"
        models = ["b"]
        api_key = "env:B"
        [endpoints.c]
        wire = "responses"
        base_url = "http://127.0.0.1:1/v1"
        [endpoints.d]
        wire = "local"
        local_model = "nowhere.gguf"
        models = ["d"]
        [endpoints.e]
        wire = "chat"
        api_version = "1"
        [policy]
        retries = 1
        """,
        TIDEGATE_STREAM_RETRIES="2",
    )

    notes = [note for note in report.notes if "xllamacpp" not in note]
    assert [note.split(":")[0] for note in notes[:2]] == ["keys", "keys"]
    assert "TIDEGATE_KEY is not set" in notes[0]
    assert "'/none' cannot be read" in notes[1]
    assert notes[2].startswith("endpoints.a: the environment variable OPENAI_API_KEY is not set")
    assert notes[3].startswith("endpoints.b: the environment variable B is not set")
    assert notes[4].startswith("endpoints.d: ")
    assert "nowhere.gguf" in notes[4]
    assert notes[5].startswith("endpoints.e: api_version='1' without an address")
    assert notes[6] == (
        "TIDEGATE_STREAM_RETRIES is set, but [policy] gives retries, which is stronger"
    )
    assert len(notes) == 7


def test_the_stronger_of_two_variables_holds_and_the_other_is_noted(explained):
    report = explained("", TIDEGATE_RETRIES="3", TIDEGATE_STREAM_RETRIES="4")

    assert rows(report)["policy.retries"] == ("4", "TIDEGATE_STREAM_RETRIES")
    assert "TIDEGATE_RETRIES is set, but so is TIDEGATE_STREAM_RETRIES, which is stronger" in (
        report.notes
    )
    told = rows(explained("", TIDEGATE_STALE_AFTER_S="9"))
    assert told["policy.stale_after_s"] == ("9", "TIDEGATE_STALE_AFTER_S")


def test_key_that_two_have_is_noted(explained):
    report = explained(
        """
        keys = ["env:A", "env:B", "env:C", "env:A"]
        [endpoints.a]
        wire = "chat"
        base_url = "http://127.0.0.1:1/v1"
        """,
        A="one",
        B="two",
        C="one",
    )

    assert report.notes == ("keys: env:A and env:C are one key, whose users share all turns",)


SECRET = "sk-very-secret"


def test_what_may_be_secret_is_not_shown(explained):
    report = explained(
        f"""
        keys = ["env:A"]
        [endpoints.a]
        wire = "chat"
        api_key = "env:A"
        headers = {{ authorization = "{SECRET}" }}
        query = {{ key = "{SECRET}" }}
        proxy = "http://user:{SECRET}@proxy:3128"
        """,
        A=SECRET,
    )

    assert SECRET not in repr(report)
    told = rows(report)
    assert told["endpoints.a.headers"][0] == "authorization=***"
    assert told["endpoints.a.query"][0] == "key=***"
    assert told["endpoints.a.proxy"][0] == "http://proxy:3128"


@pytest.mark.parametrize(
    "text",
    [
        f'keys = ["{SECRET}"]',
        f'keys = "{SECRET}"',
        f'keyz = "{SECRET}"',
        f'[endpoints.a]\nwire = "chat"\napi_key = "{SECRET}"',
        f'[endpoints.a]\nwire = "chat"\napi_key = ["{SECRET}"]',
        f'[endpoints.a]\nwire = "chat"\napikey = "{SECRET}"',
        f'[endpoints.a]\nwire = "chat"\nheaders = "{SECRET}"',
        f'[endpoints.a]\nwire = "chat"\nheaders.authorization = ["{SECRET}"]',
        f'[endpoints.a]\nwire = "chat"\nheaders.authorization = "{SECRET}\\n"',
        f'[endpoints.a]\nwire = "chat"\nquery.key = ["{SECRET}"]',
        f'[endpoints.a]\nwire = "chat"\nproxy = "socks://u:{SECRET}@proxy"',
        f'[endpoints.a]\nwire = "chat"\nproxy = ["{SECRET}"]',
        f'[endpoints.a]\nwire = "chat"\nbase_url = "http://u:{SECRET}@host"',
        f'[endpoints.a]\nwire = "local"\nheaders.authorization = "{SECRET}"',
    ],
)
def test_complaint_shows_no_secret_either(explained, text):
    with pytest.raises(InvalidConfig) as raised:
        explained(text)

    assert SECRET not in str(raised.value)


def test_complaint_about_a_variable_shows_no_secret_either(explained):
    with pytest.raises(InvalidConfig) as raised:
        explained("", TIDEGATE_KEYS=SECRET, TIDEGATE_ENDPOINTS__A__API_KEY=SECRET)

    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("first", "second", "hidden"),
    [
        ('wire = "chat"', 'wire = "chat"\nmodels = ["gpt-*"]', True),
        ('wire = "chat"\nmodels = ["gpt-*"]', 'wire = "chat"\nmodels = ["gpt-5"]', True),
        ('wire = "chat"\nmodels = ["gpt-*"]', 'wire = "chat"\nmodels = ["gpt-5*"]', True),
        ('wire = "chat"\nmodels = ["gpt-?"]', 'wire = "chat"\nmodels = ["gpt-*"]', False),
        ('wire = "chat"\nmodels = ["*ab*"]', 'wire = "chat"\nmodels = ["[ab]"]', False),
        ('wire = "chat"\nmodels = ["gpt-*"]', 'wire = "chat"\nmodels = ["gpt-5", "o3"]', False),
        ('wire = "local"', 'wire = "messages"', True),
        ('wire = "chat"', 'wire = "local"', False),
        ('wire = "chat"', 'wire = "messages"', False),
        ('wire = "chat"', 'wire = "chat"\nmodels = []', False),
        ('wire = "chat"\nmodels = []', 'wire = "chat"', False),
    ],
)
def test_endpoint_that_no_model_leads_to_is_noted(explained, first, second, hidden):
    report = explained(f"[endpoints.first]\n{first}\n[endpoints.second]\n{second}\n")

    notes = [note for note in report.notes if "no model's name leads here" in note]
    assert len(notes) == hidden
    assert all(note.startswith("endpoints.second: ") and "go to first," in note for note in notes)
