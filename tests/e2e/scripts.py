"""What tests about behaviour share: scripts for the lab, how it sees an end, callers in threads."""

import dataclasses
import threading

from tidegate.lab import Answer, End, chat, gate


GUARD_S = 30
LEFT = ("eof", "reset")
"""How the lab sees a connection end that the client closes."""

ENDLESS = Answer([chat.text("so far"), End.HOLD], repeat=True)
HELD = Answer([chat.text("Hel"), gate("go on"), chat.text("lo"), chat.finish(), chat.done()])


def refusal(status, message="no", *, headers=None, **fields):
    return Answer.json({"error": {"message": message, **fields}}, status, headers)


def streamed(*steps, end=End.KEEPALIVE):
    return Answer([*steps, end])


def in_order(*answers):
    """Answer with the last one for ever."""
    *first, last = answers
    return [*first, dataclasses.replace(last, repeat=True)]


def in_threads(count, job):
    """Do a job in several threads at the same time, and return what each returned."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(job())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD_S)
    return results
