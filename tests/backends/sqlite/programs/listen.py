"""Print, on a line each, the hints that arrive and the monotonic time they did. Arguments: path, how many."""

import asyncio
import sys
import time

import msgspec

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.ports.notifier import Hint
from ropewalk.runtime.system import SystemRuntime


async def main(path: str, number: int) -> None:
    store = SqliteStore(path, SystemRuntime())
    await store.open()
    loop, heard = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def listen(hint: Hint) -> None:
        print(time.monotonic(), msgspec.json.encode(hint).decode(), flush=True)
        loop.call_soon_threadsafe(heard.release)

    unsubscribe = store.notifier.subscribe(listen)
    print("listening", flush=True)
    async with asyncio.timeout(60):
        for _ in range(number):
            await heard.acquire()
    unsubscribe()
    await store.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
