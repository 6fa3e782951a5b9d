"""Claim and settle until nothing is ready; print the ids of what this process completed. Arguments: path, owner;
and `together`: say when the store is open, and begin when a line comes."""

import asyncio
import json
import sys

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.runtime.system import SystemRuntime


def request(owner: str, done: int) -> ClaimRequest:
    types = {"t": 30 * SECOND}
    return ClaimRequest(owner=owner, types=types, slots=40, limit=40, first_ticket=done + 1, started_upto=done + 40)


async def main(path: str, owner: str, together: str = "") -> None:
    store = SqliteStore(path, SystemRuntime())
    if together:
        await store.open()
        print("open", flush=True)
        sys.stdin.readline()
    done: list[str] = []
    while jobs := (await store.claim(request(owner, len(done)))).jobs:
        ends = [Settlement(seq=job.seq, fence=job.fence, move=Move.COMPLETE) for job in jobs]
        answers = (await store.settle(owner, ends)).settled
        assert all(answer.lost is None for answer in answers)
        done += [job.id for job in jobs]
    await store.close()
    print(json.dumps(done))


asyncio.run(main(*sys.argv[1:]))
