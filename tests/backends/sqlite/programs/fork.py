"""Fork in the middle of using a store; the child goes on after the parent closed. Argument: path.

The parent's close is what would delete the log under a child that believes to hold locks it does not have.
"""

import asyncio
import os
import sys

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.record import NewJob
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime


async def submit(store: SqliteStore, *ids: str) -> None:
    for each in ids:
        [answer] = await store.submit([Submission(jobs=[NewJob(id=each, type="t", input=b"{}")])])
        assert isinstance(answer, list), answer
        assert (await store.get("default", [each])).jobs.keys() == {each}


def fork(store: SqliteStore, parent_closed: int, child_wrote: int) -> int:
    child = os.fork()
    if child:
        return child
    asyncio.run(submit(store, "child-1"))
    os.write(child_wrote, b"x")
    os.read(parent_closed, 1)
    asyncio.run(submit(store, "child-2", "child-3"))
    os._exit(0)  # without closing, as a killed process would


def main(path: str) -> None:
    store = SqliteStore(path, SystemRuntime())
    closed_read, closed_write = os.pipe()
    wrote_read, wrote_write = os.pipe()
    asyncio.run(submit(store, "parent-1"))
    child = fork(store, closed_read, wrote_write)
    os.read(wrote_read, 1)
    asyncio.run(submit(store, "parent-2"))
    asyncio.run(store.close())
    os.write(closed_write, b"x")
    _, status = os.waitpid(child, 0)
    assert status == 0, status


main(sys.argv[1])
