"""A scripted provider server on a real loopback socket, for tests and for trying things out.

>>> from tidegate.lab import Answer, Lab, chat, gate
>>> cut_after_one_word = Answer([chat.text("Hel"), gate("taken"), End.CUT])
>>> with Lab([cut_after_one_word, chat.answer("Hello")]) as lab:
...     lab.requests
[]

Path: scripted bytes -> this -> a provider actor's transport
"""

from tidegate.lab import chat, converse, messages, responses
from tidegate.lab.form import answers_from, scripts_from
from tidegate.lab.record import Closed, Request
from tidegate.lab.script import Answer, End, HttpDate, Step
from tidegate.lab.server import Lab
from tidegate.lab.steps import blast, frame, gate, keepalive, pace, raw, send, wait, zipped


__all__ = [
    "Answer",
    "Closed",
    "End",
    "HttpDate",
    "Lab",
    "Request",
    "Step",
    "answers_from",
    "blast",
    "chat",
    "converse",
    "frame",
    "gate",
    "keepalive",
    "messages",
    "pace",
    "raw",
    "responses",
    "scripts_from",
    "send",
    "wait",
    "zipped",
]
