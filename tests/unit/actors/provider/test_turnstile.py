"""One start in each turn of the loop, and something else in between."""

import asyncio
import itertools

from tidegate.actors.provider.turnstile import Turnstile


def run(*jobs, between=None):
    """Run jobs at once, and return what they noted, with what came between them."""
    noted = []

    async def main():
        turnstile = Turnstile()
        tasks = [asyncio.create_task(job(turnstile, noted)) for job in jobs]
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()

        def tick():
            noted.append("turn")
            if not all(task.done() for task in tasks):
                loop.call_soon(tick)

        loop.call_soon(tick)
        if between is not None:
            between(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    return noted


def start(name):
    async def job(turnstile, noted):
        await turnstile.pass_through()
        noted.append(name)

    return job


def test_first_one_does_not_wait():
    async def main():
        passing = Turnstile().pass_through()
        try:
            passing.send(None)
        except StopIteration:
            return
        raise AssertionError("it waited")

    asyncio.run(main())


def test_burst_is_spread_in_order():
    noted = run(*(start(number) for number in range(5)))

    assert [each for each in noted if each != "turn"] == [0, 1, 2, 3, 4]
    places = [noted.index(number) for number in range(1, 5)]
    assert all("turn" in noted[one:other] for one, other in itertools.pairwise(places))


def test_one_that_is_cancelled_holds_up_nobody():
    noted = run(*(start(number) for number in range(4)), between=lambda tasks: tasks[2].cancel())

    assert [each for each in noted if each != "turn"] == [0, 1, 3]


def test_it_is_free_again_behind_a_burst():
    async def twice(turnstile, noted):
        await turnstile.pass_through()
        for _ in range(3):
            await asyncio.sleep(0)
        passing = turnstile.pass_through()
        try:
            passing.send(None)
        except StopIteration:
            noted.append("free")

    assert "free" in run(twice)
