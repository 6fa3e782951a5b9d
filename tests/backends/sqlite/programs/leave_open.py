"""End without closing the store, with somebody subscribed and a request under way. Argument: path."""

import asyncio
import sys

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.record import NewJob
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime

store = SqliteStore(sys.argv[1], SystemRuntime())


async def main() -> None:
    store.notifier.subscribe(lambda _: None)
    await store.submit([Submission(jobs=[NewJob(id="before", type="t", input=b"{}")])])
    await store.get("default", ["before"])
    asyncio.get_running_loop().create_task(
        store.submit([Submission(jobs=[NewJob(id="twice", type="t", input=b"{}")] * 1000)])
    )
    print("acknowledged")


asyncio.run(main())
