"""A gate makes "before" an order instead of a sleep."""

from tidegate.lab import Answer, End, chat, gate, send


def test_script_stands_until_the_gate_is_opened(lab, connect):
    lab.add(Answer([send("before"), gate("taken"), send("after"), End.EOF]))
    client = connect(lab)
    client.ask()

    lab.reached("taken")
    assert b"after" not in client.read_until(b"before")
    lab.open("taken")

    assert b"after" in client.read_to_end()[0]


def test_what_was_written_before_a_gate_can_be_read_without_waiting(lab, connect):
    lab.add(Answer([send("x" * 50_000), gate("g")]))
    client = connect(lab)
    client.ask()
    lab.reached("g")

    client.socket.setblocking(False)
    data = b""
    while not data.endswith(b"xx\r\n"):
        data += client.socket.recv(1 << 20)


def test_open_gate_stays_open(lab, connect):
    lab.open("g")
    lab.add(Answer([gate("g"), send("1")]), Answer([gate("g"), send("2"), End.EOF]))
    client = connect(lab)

    client.ask()
    client.ask()

    assert b"2" in client.read_to_end()[0]
    lab.reached("g", times=2)


def test_many_scripts_stand_at_one_gate(lab, connect):
    lab.add(Answer([gate("all"), chat.text("go"), End.EOF], repeat=True))
    clients = [connect(lab) for _ in range(20)]
    for client in clients:
        client.ask()

    lab.reached("all", times=20)
    lab.open("all")

    assert all(b'"go"' in client.read_to_end()[0] for client in clients)


def test_gates_have_names(lab, connect):
    lab.add(Answer([gate("a"), send("1"), gate("b"), send("2"), End.EOF]))
    client = connect(lab)
    client.ask()

    lab.open("b")
    lab.reached("a")
    lab.open("a")

    assert client.read_to_end()[1] == "eof"
