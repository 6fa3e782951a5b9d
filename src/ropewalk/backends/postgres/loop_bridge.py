"""Verbs are plain Python that waits; a connection of asyncio is used on its own loop only.

So the verb runs in a thread, and every statement of it on the loop. Where the call is cancelled, the statement under
way is cancelled, the verb ends with that, and what it began is put back before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from ropewalk.backends.postgres.drivers.driver import Answer, AsyncSpeaker, Given, Speaker
from ropewalk.backends.sql.run_to_completion import to_its_end
from ropewalk.ports.runtime import Runtime

T = TypeVar("T")


async def on_this_loop(runtime: Runtime, speaker: AsyncSpeaker, work: Callable[[Speaker], T]) -> T:
    """Run `work` in a thread. Returns, or raises, only when that thread is done with the connection."""
    bridge = Bridge(speaker)
    outcome: Future[T] = Future()
    runtime.spawn(_in_thread(runtime, outcome, lambda: work(bridge)), name="ropewalk-joining")
    return await to_its_end(asyncio.wrap_future(outcome), when_cancelled=bridge.interrupt)


class Bridge(Speaker):
    """For the thread: speaks on the loop on which it was made."""

    def __init__(self, speaker: AsyncSpeaker) -> None:
        self._speaker = speaker
        self._loop = asyncio.get_running_loop()
        self._interrupted = False
        self._statement: asyncio.Task[Any] | None = None

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        return asyncio.run_coroutine_threadsafe(self._interruptible(sql, values, binary), self._loop).result()

    def surely(self, sql: str) -> None:
        asyncio.run_coroutine_threadsafe(self._speaker.execute(sql), self._loop).result()

    def interrupt(self) -> None:
        """On the loop."""
        self._interrupted = True
        if self._statement is not None:
            self._statement.cancel()

    async def _interruptible(self, sql: str, values: Given, binary: bool) -> Answer:  # noqa: FBT001  passed on
        if self._interrupted:
            raise asyncio.CancelledError
        self._statement = asyncio.current_task()
        try:
            return await self._speaker.execute(sql, values, binary=binary)
        finally:
            self._statement = None


async def _in_thread(runtime: Runtime, outcome: Future[T], work: Callable[[], T]) -> None:
    """Not the task's own result: at the end of a loop every task is cancelled, and the thread goes on."""

    def settle() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # whatever it is, somebody waits for it
            outcome.set_exception(error)

    try:
        await runtime.in_thread(settle)
    except Exception as error:  # no thread could be had
        outcome.set_exception(error)
