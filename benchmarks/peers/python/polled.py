"""A worker for libraries that are a queue and nothing more: a thread that takes, handles and acknowledges in turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

POLL_SECONDS: Final = 0.001


@asynccontextmanager
async def polling(step: Callable[[], bool]) -> AsyncGenerator[None, None]:
    """Calls `step` again and again in a thread; after one that found nothing it waits a little."""
    enough = threading.Event()

    def work() -> None:
        while not enough.is_set():
            if not step():
                enough.wait(POLL_SECONDS)

    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        yield
    finally:
        enough.set()
        await working
