"""What is logged of streams and observers that raise: where, and none of their words."""

import pytest

import tidegate as tg
from tidegate.testing.eventually import eventually


SAID = "what the model said"
PIECES = (("text", SAID), ("fail", SAID))


@pytest.fixture(params=["worker", "inline"])
def placement(request):
    return request.param


@pytest.fixture
def logged(capfd, caplog):
    """Return what was logged up to now, here and by workers."""
    seen = []

    def text():
        seen.append(capfd.readouterr().err)
        return "".join(seen) + caplog.text

    return text


@pytest.mark.parametrize("how", ["told", "told_async"])
def test_stream_that_raises_is_named_without_its_words(ask_at, placement, logged, how):
    with tg.Runtime(workers=1) as runtime:
        with pytest.raises(tg.InternalError, match=f"raised ValueError: {SAID}") as raised:
            runtime.run(ask_at(placement, how, *PIECES))
        token = raised.value.answer.attempts[0].token
        named = f"token {token}: the stream of lab_streams:Streams failed:\nValueError at\n"
        eventually(lambda: named in logged())

    assert "in fail" in logged()
    assert SAID not in logged()


@pytest.mark.parametrize("how", ["bad_close", "bad_async_close"])
def test_close_that_raises_is_named_without_its_words(ask_at, placement, logged, how):
    with tg.Runtime(workers=1) as runtime:
        assert runtime.run(ask_at(placement, how)).finish == "stop"
        named = "the close of a stream of lab_streams:Streams failed:\nRuntimeError at\n"
        eventually(lambda: named in logged())

    assert "close went wrong" not in logged()


def test_factory_whose_close_raises_is_named_without_its_words(ask_at, placement, logged):
    request = ask_at(placement, "told", ("finish",), factory="lab_streams:NeverCloses")
    with tg.Runtime(workers=1) as runtime:
        runtime.run(request)

    eventually(lambda: "the close of lab_streams:NeverCloses failed:" in logged())
    assert "close went wrong" not in logged()


def test_observer_that_raises_is_named_without_the_words(ask_at, logged):
    class Onlooker(tg.Observer):
        def chunk(self, turn_id, attempt, chunk):
            raise LookupError(chunk["text"])

    with tg.Runtime(workers=1, observers=[Onlooker()]) as runtime:
        runtime.run(ask_at("worker", "told", ("text", SAID), ("finish",)))
        eventually(lambda: "LookupError at\n" in logged())

    assert "in chunk" in logged()
    assert SAID not in logged()
