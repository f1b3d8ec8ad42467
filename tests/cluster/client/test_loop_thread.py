"""An event loop in a thread: results, errors, and the end of its tasks."""

from __future__ import annotations

import asyncio

import pytest

from cluster.client.loop_thread import LoopThread


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_a_coroutine_returns_its_result() -> None:
    with LoopThread("test") as loop:
        assert [loop.run(_double(each)) for each in range(3)] == [0, 2, 4]


def test_an_error_reaches_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("wrong")

    with LoopThread("test") as loop, pytest.raises(ValueError, match="wrong"):
        loop.run(fail())


def test_a_coroutine_that_takes_too_long_is_a_timeout() -> None:
    with LoopThread("test") as loop, pytest.raises(TimeoutError):
        loop.run(asyncio.Event().wait(), timeout_s=0.01)


def test_tasks_are_cancelled_and_awaited_at_the_end() -> None:
    steps: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            steps.append("cleaned up")

    async def start() -> asyncio.Task[None]:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task

    with LoopThread("test") as loop:
        task = loop.run(start())
    assert task.cancelled()
    assert steps == ["cleaned up"]
