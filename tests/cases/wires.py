"""The same small conversation in the words of each wire, for what must hold on all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate.lab import Answer, chat, converse, messages, responses, send
from tidegate.lab.script import Send


@dataclass(frozen=True)
class Words:
    """How a wire says things; a message has input 7 and output 1 model tokens.

    Attributes:
        begin: what comes first, with the message announced.
        text: a piece of it.
        end: what comes behind the text that is given, with the evidence.
        call: a call ``pay`` with these arguments, its end apart.
        called: the end of an answer that consists of that call.
        cut: the end of an answer that came to its length.
        ping: life that is no progress.
        failing: an error in the stream.
        limited: an answer of status 429 with headers and a text.
        document: the whole answer, not streamed.
        headers: of a stream.
    """

    begin: tuple[Send, ...]
    text: Callable[[str], Send]
    end: Callable[[str], list[Send]]
    call: Callable[[str], list[Send]]
    called: Callable[[str], list[Send]]
    cut: tuple[Send, ...]
    ping: Send
    failing: Send
    limited: Callable[[str, dict[str, Any]], Answer]
    document: Callable[[str], Any]
    headers: dict[str, str]

    def stream(self, *steps, **options):
        return Answer(steps, headers=self.headers, **options)

    def answer(self, text):
        return self.stream(*self.begin, self.text(text), *self.end(text))


def _limited(message, headers):
    error = {"type": "rate_limit_error", "message": message}
    return Answer.json({"type": "error", "error": error}, 429, headers)


def _responses_call(arguments):
    announced = responses.added(responses.call("c1", "pay"))
    return [announced, *([responses.arguments(arguments)] if arguments else [])]


def _responses_called(arguments):
    return [
        responses.arguments_done(arguments),
        responses.item_done(responses.call("c1", "pay", arguments)),
        responses.completed(responses.call("c1", "pay", arguments), usage=responses.usage(7, 1)),
    ]


_SSE = {"content-type": "text/event-stream"}
WORDS = {
    "chat": Words(
        begin=(chat.role(),),
        text=chat.text,
        end=lambda _text: [chat.finish(), chat.usage(7, 1), chat.done()],
        call=lambda arguments: [
            chat.tool(id="c1", name="pay"),
            *([chat.tool(arguments=arguments)] if arguments else []),
        ],
        called=lambda _arguments: [chat.finish("tool_calls"), chat.usage(7, 1), chat.done()],
        cut=(chat.finish("length"), chat.usage(7, 1), chat.done()),
        ping=send(": ping\n\n"),
        failing=chat.error("gone", code=500),
        limited=_limited,
        document=lambda text: chat.completion(text, tokens=(7, 1)),
        headers=_SSE,
    ),
    "responses": Words(
        begin=(responses.created(), responses.added(responses.message())),
        text=responses.text,
        end=lambda text: [responses.completed(responses.said(text), usage=responses.usage(7, 1))],
        call=_responses_call,
        called=_responses_called,
        cut=(responses.incomplete(usage=responses.usage(7, 1)),),
        ping=responses.event("in_progress"),
        failing=responses.failed("gone"),
        limited=_limited,
        document=lambda text: responses.response(responses.said(text), usage=responses.usage(7, 1)),
        headers=_SSE,
    ),
    "messages": Words(
        begin=(messages.start(tokens=(7, 1)), messages.text_start()),
        text=messages.text,
        end=lambda _text: [
            messages.block_stop(0),
            messages.stop_reason("end_turn", 1),
            messages.stop(),
        ],
        call=lambda arguments: [
            messages.start(tokens=(7, 1)),
            messages.tool_start(0, "c1", "pay"),
            messages.tool_input(arguments, 0),
        ],
        called=lambda _arguments: [
            messages.block_stop(0),
            messages.stop_reason("tool_use", 1),
            messages.stop(),
        ],
        cut=(messages.block_stop(0), messages.stop_reason("max_tokens", 1), messages.stop()),
        ping=messages.ping(),
        failing=messages.error("api_error", "gone"),
        limited=_limited,
        document=lambda text: messages.message(text, tokens=(7, 1)),
        headers=_SSE,
    ),
    "converse": Words(
        begin=(converse.message_start(),),
        text=converse.text,
        end=lambda _text: [
            converse.block_stop(),
            converse.message_stop(),
            converse.metadata(7, 1),
        ],
        call=lambda arguments: [
            converse.message_start(),
            converse.tool("pay", id="c1"),
            converse.arguments(arguments),
        ],
        called=lambda _arguments: [
            converse.block_stop(),
            converse.message_stop("tool_use"),
            converse.metadata(7, 1),
        ],
        cut=(
            converse.block_stop(),
            converse.message_stop("max_tokens"),
            converse.metadata(7, 1),
        ),
        ping=converse.event("ping", {}),
        failing=converse.exception("internalServerException", "gone"),
        limited=lambda message, headers: converse.error_answer(
            429, "ThrottlingException", message, headers
        ),
        document=lambda text: converse.completion({"text": text}, tokens=(7, 1)),
        headers=converse.EVENT_STREAM,
    ),
}
