"""Stream one answer, and say what became of its attempts.

python examples/stream.py [BASE_URL [MODEL]]      without arguments: the local model
"""

import sys

import tidegate as tg


def main(base_url: str | None = None, model: str = "smollm2") -> None:
    """Ask one question."""
    endpoint = tg.Endpoint.chat(base_url) if base_url else tg.Endpoint.local()
    payload = {"model": model, "messages": [{"role": "user", "content": "Say hello."}]}
    with tg.Runtime(workers=1) as runtime:
        turn = runtime.start(tg.Request(endpoint, payload))
        for piece in turn.text():
            print(piece, end="", flush=True)
        answer = turn.result()
    print()
    for attempt in answer.attempts:
        print(f"attempt {attempt.number}: {attempt.outcome} after {attempt.ended_s:.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
