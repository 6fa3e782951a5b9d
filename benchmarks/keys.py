"""`python -m benchmarks.keys URL`: what a claim costs where very many limit keys wait (docs/decisions/0019).

Three times on the store that is named, which is filled and left so: jobs without a key, with a key each, and with a key
each under a limit of the whole family. Not part of `make bench`: there is no floor to compare with.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Final

from ropewalk.connect import connect
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import claim_request, new_job, settlement

JOBS: Final = 10_000
BATCH: Final = 5_000
CLAIMS: Final = 30
GIVEN: Final = 100


async def main(url: str) -> None:
    store = connect(url, SystemRuntime(), allow_weaker_durability=True, migrate=True)
    await store.open()
    for tenant, keyed, limited in (("plain", False, False), ("keyed", True, False), ("limited", True, True)):
        await fill(store, tenant, keyed=keyed)
        if limited:
            await LIMITS.of(store).put_limit(FlowLimit(tenant=tenant, kind="key", name="c:*", concurrency=1))
        giving = await claims(store, tenant, full=False)
        await LIMITS.of(store).put_limit(FlowLimit(tenant=tenant, kind="queue", name="default", concurrency=1))
        await store.claim(claim_request(limit=1, tenants=(tenant,)))
        in_vain = await claims(store, tenant, full=True)
        print(
            f"{tenant:8}  a claim of {GIVEN}: {giving:6.2f} ms   nothing to give, the queue is full: {in_vain:6.2f} ms"
        )
    await store.close()


async def fill(store: Store, tenant: str, *, keyed: bool) -> None:
    for start in range(0, JOBS, BATCH):
        numbers = range(start, start + BATCH)
        jobs = [new_job(tenant=tenant, limit_key=f"c:{number}" if keyed else None) for number in numbers]
        await store.submit([Submission(jobs=jobs)])


async def claims(store: Store, tenant: str, *, full: bool) -> float:
    """The median in ms; what is given is settled before the next."""
    spent: list[float] = []
    for turn in range(CLAIMS):
        began = time.perf_counter()
        claimed = await store.claim(claim_request(limit=GIVEN, tenants=(tenant,), turn=turn))
        spent.append(1000 * (time.perf_counter() - began))
        assert len(claimed.jobs) == (0 if full else GIVEN), f"{len(claimed.jobs)} jobs were given"
        await store.settle("worker", [settlement(job) for job in claimed.jobs])
    return statistics.median(spent)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
