"""Ask several times at once, keep what comes first, and stop paying for the others.

python examples/first_words.py [BASE_URL [MODEL]]      without arguments: the local model
"""

import asyncio
import sys

import tidegate as tg


async def main(base_url: str | None = None, model: str = "smollm2") -> None:
    """Race three turns and interrupt those that come later."""
    endpoint = tg.Endpoint.chat(base_url) if base_url else tg.Endpoint.local()
    payload = {"model": model, "messages": [{"role": "user", "content": "One word, please."}]}
    async with tg.Runtime(workers=1) as runtime:
        turns = [runtime.start(tg.Request(endpoint, payload)) for _ in range(3)]
        tasks = [asyncio.ensure_future(turn) for turn in turns]
        done, late = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        print(next(iter(done)).result().text)
        for turn in turns:
            turn.interrupt("another one was faster")
        await asyncio.gather(*late, return_exceptions=True)
        figures = runtime.statistics()
        print(f"{figures.completed} completed, {figures.interrupted} interrupted")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
