"""The one reader of the environment."""

from tidegate.settings import environment


def test_environment_shows_what_is_set_later(monkeypatch):
    view = environment()
    monkeypatch.setenv("TIDEGATE_STREAM_RETRIES", "7")

    assert view["TIDEGATE_STREAM_RETRIES"] == "7"
