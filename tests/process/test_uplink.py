"""The worker's end of the pipe, in a loop of the test's own: what leaves when."""

import asyncio
import socket

import pytest

from tidegate.actors.provider.worker import TurnSelector, Uplink
from tidegate.protocol.attempts import Described, Life, WorkerReady
from tidegate.protocol.codec import FrameBuffer, decode_from_worker


@pytest.fixture
def play():
    """Run a scene in a loop like the worker's, with an uplink and the host's end of it."""
    selector = TurnSelector()
    loop = asyncio.SelectorEventLoop(selector)
    ours, theirs = socket.socketpair()

    async def run(scene):
        ended = asyncio.get_running_loop().create_future()
        theirs.setblocking(False)
        transport, uplink = await loop.connect_accepted_socket(lambda: Uplink(1, ended), theirs)
        selector.turn_over = uplink.turn_over
        uplink.serve(None)
        try:
            return await scene(uplink, ours, ended)  # no timer, which would turn a loop that hangs
        finally:
            transport.abort()
            await asyncio.sleep(0)

    with ours:
        ours.settimeout(10)
        yield lambda scene: loop.run_until_complete(run(scene))
        loop.close()


def frames_of(sock):
    return [decode_from_worker(body) for body in FrameBuffer().feed(sock.recv(1 << 16))]


def test_what_one_turn_of_the_loop_sends_is_one_frame_and_leaves_with_its_end(play):
    async def scene(uplink, ours, _ended):
        ready = frames_of(ours)
        uplink.send(Life(1, 1))
        uplink.send(Life(1, 2))
        await asyncio.sleep(0)
        return ready, frames_of(ours)

    ([(ready,)], turn) = play(scene)

    assert isinstance(ready, WorkerReady)
    assert turn == [[Life(1, 1), Life(1, 2)]]


def test_host_that_is_gone_when_a_turn_ends_ends_the_worker(play):
    async def scene(uplink, ours, ended):
        ours.close()
        uplink.send(Life(1, 1))
        await ended

    play(scene)


def test_message_that_cannot_be_sent_when_a_turn_ends_ends_the_worker(play):
    async def scene(uplink, _ours, ended):
        uplink.send(Described(1, 1, response_id="\ud800"))
        await ended

    with pytest.raises(UnicodeEncodeError):
        play(scene)
