"""Runs a turn in a child process and sends its answer back; run by path, with both ends given."""

import tidegate as tg


def main(url, answers):
    """Ask ``url``, and send what came through ``answers``."""
    endpoint = tg.Endpoint.chat(url, "test-key")
    payload = {"model": "test-model", "messages": [{"role": "user", "content": "Hello"}]}
    with tg.Runtime(workers=1) as runtime:
        answer = runtime.run(tg.Request(endpoint, payload))
    answers.send((answer.text, answer.finish))


if __name__ == "asked":
    main(url, answers)  # noqa: F821 - both are given to runpy
