"""What waits to be written: its order, and what is not worth waking anybody for."""

import threading

from tidegate.daemon.journal.inbox import Inbox


def test_items_come_in_their_order():
    inbox = Inbox()
    for number in range(3):
        assert inbox.put(number, soon=True)

    assert [inbox.get(0) for _ in range(4)] == [0, 1, 2, None]


def test_what_can_wait_goes_with_what_comes_next_and_before_it():
    inbox = Inbox()
    inbox.put("begin", soon=False)
    assert inbox.get_now() is None
    assert len(inbox) == 1

    inbox.put("event", soon=True)

    assert [inbox.get(0), inbox.get_now(), inbox.get_now()] == ["begin", "event", None]


def test_all_that_could_wait_comes_when_it_is_time():
    inbox = Inbox()
    inbox.put("one", soon=False)
    inbox.put("two", soon=False)

    inbox.flush()
    inbox.flush()

    assert [inbox.get(0), inbox.get_now(), inbox.get_now()] == ["one", "two", None]


def test_nothing_comes_behind_the_last_item_and_nothing_is_held_at_the_end():
    inbox = Inbox()
    inbox.put("begin", soon=False)

    assert inbox.close("last")

    assert not inbox.put("late", soon=True)
    assert not inbox.close("again")
    assert inbox.closed
    assert [inbox.get(0), inbox.get(0), inbox.get_now()] == ["begin", "last", None]


def test_whoever_waits_is_woken_by_an_item_and_by_the_end():
    inbox = Inbox()
    got = []
    reader = threading.Thread(target=lambda: got.append(inbox.get(30)))
    reader.start()
    inbox.put("event", soon=True)
    reader.join(30)
    waiter = threading.Thread(target=lambda: inbox.wait_closed(30))
    waiter.start()
    inbox.close("last")
    waiter.join(30)

    assert got == ["event"]
    assert not waiter.is_alive()
