"""Waiting for work in progress."""

from __future__ import annotations

import asyncio

from replay.run.concurrency_limit import InFlight


def test_a_waiter_continues_when_the_count_falls() -> None:
    async def main() -> None:
        under_way: InFlight[str] = InFlight()
        await under_way.until_at_most(0)
        for number, name in enumerate("abc"):
            under_way.begin(number, name)
        assert list(under_way) == ["a", "b", "c"]
        waiting = asyncio.create_task(under_way.until_at_most(1))
        under_way.end(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        under_way.end(0)
        await waiting
        assert len(under_way) == 1

    asyncio.run(main())


def test_a_waiter_can_be_cancelled() -> None:
    async def main() -> None:
        under_way: InFlight[str] = InFlight()
        under_way.begin(0, "a")
        waiting = asyncio.create_task(under_way.until_at_most(0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        under_way.end(0)
        assert not len(under_way)

    asyncio.run(main())
