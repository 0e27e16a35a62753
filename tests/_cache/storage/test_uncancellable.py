"""Futures that cannot be cancelled."""

import asyncio

import pytest

from llm_provider._cache.storage.uncancellable import UncancellableFuture


@pytest.mark.parametrize("way", ["task", "timeout"])
def test_a_cancelled_task_ends_after_the_future(way: str) -> None:
    async def main() -> list[str]:
        future: UncancellableFuture[str] = UncancellableFuture()
        seen = []

        async def work() -> None:
            try:
                async with asyncio.timeout(0.001 if way == "timeout" else None):
                    seen.append(await future)
            except TimeoutError:
                seen.append("timed out")
            finally:
                seen.append(f"ended, done={future.done()}")

        task = asyncio.create_task(work())
        await asyncio.sleep(0.05)
        if way == "task":
            task.cancel()
            await asyncio.sleep(0.05)
        assert not task.done()
        future.set_result("result")
        await asyncio.wait([task])
        assert task.cancelled() == (way == "task")
        return seen

    ended = ["ended, done=True"]
    assert asyncio.run(main()) == (["timed out", *ended] if way == "timeout" else ended)
