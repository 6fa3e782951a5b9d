"""Submit batch after batch, printing the ids of each one once it is acknowledged, until killed. Argument: path."""

import asyncio
import sys

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.record import NewJob
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime


async def main(path: str) -> None:
    runtime = SystemRuntime()
    store = SqliteStore(path, runtime)

    async def submit() -> None:
        while True:
            jobs = [NewJob(id=runtime.new_id(), type="t", input=b"{}") for _ in range(20)]
            await store.submit([Submission(jobs=jobs)])
            print(*(job.id for job in jobs), flush=True)

    await asyncio.gather(*(submit() for _ in range(4)))


asyncio.run(main(sys.argv[1]))
