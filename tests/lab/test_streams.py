"""Many streams at once, fast ones and slow ones, in one thread."""

import selectors
import threading

from tidegate.lab import Answer, End, blast, chat, gate, pace


def read_all(clients):
    """Read every client to its end, whichever has something."""
    bodies = dict.fromkeys(clients, b"")
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while selector.get_map():
            for key, _ in selector.select(10):
                data = key.fileobj.recv(1 << 20)
                bodies[key.data] += data
                if not data:
                    selector.unregister(key.fileobj)
    return list(bodies.values())


def test_two_hundred_streams_at_once(lab, connect):
    words = [chat.text(f"word {number}") for number in range(20)]
    lab.add(Answer([gate("all"), pace(words, 0.005), End.EOF], repeat=True))
    clients = [connect(lab) for _ in range(200)]
    for client in clients:
        client.ask()
    lab.reached("all", times=200)
    threads = [thread for thread in threading.enumerate() if thread.name == "lab"]

    lab.open("all")
    bodies = read_all(clients)

    assert len(threads) == 1
    assert all(body.count(b"data: ") == 20 for body in bodies)
    assert all(body.endswith(b"0\r\n\r\n") for body in bodies)
    assert len({request.connection for request in lab.requests}) == 200


def test_blast_delivers_every_frame_to_slow_and_fast_readers(lab, connect):
    frames = [chat.text(f"{number:05}") for number in range(1000)]
    lab.add(Answer([blast(frames, per_write=64, times=20), End.EOF], repeat=True))
    slow = connect(lab)
    slow.ask()
    fast = connect(lab)
    fast.ask()

    ahead, behind = fast.read_to_end()[0], slow.read_to_end()[0]

    assert ahead == behind
    assert ahead.count(b"data: ") == 20_000
    assert ahead.count(b'"00999"') == 20
