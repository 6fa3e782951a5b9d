"""`python -m benchmarks.quotas URL`: what a submission costs under a quota (docs/decisions/0024).

On the store that is named, which is filled and left so: one job after another comes in for a tenant with many waiting,
without a quota, beside one of another tenant, and under its own. Not part of `make bench`: there is no floor to compare
with.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from msgspec import structs

from ropewalk.connect import connect
from ropewalk.domain.limits.quota import PENDING_MAX, Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.ports.store import capabilities
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import new_job

WAITING: Final = (100, 10_000, 99_000)
BATCH: Final = 5_000
SUBMISSIONS: Final = 50
QUOTAS: Final = {
    "of another": Quota(tenant="another", pending=1),
    "payload": Quota(tenant="", payload_bytes=1000),
    "submissions": Quota(tenant="", submissions=Rate(1_000_000, per=60, algorithm="token")),
    "pending": Quota(tenant="", pending=PENDING_MAX),
}


async def main(url: str) -> None:
    store = connect(url, SystemRuntime(), allow_weaker_durability=True, migrate=True)
    await store.open()
    for waiting in WAITING:
        tenant = f"t{waiting}"
        for start in range(0, waiting, BATCH):
            jobs = [new_job(tenant=tenant) for _ in range(min(BATCH, waiting - start))]
            await store.submit([Submission(jobs=jobs)])
        figures = {"none": await submissions(store, tenant)}
        for name, quota in QUOTAS.items():
            holder = quota.tenant or tenant
            await capabilities.QUOTAS.of(store).put_quota(structs.replace(quota, tenant=holder))
            figures[name] = await submissions(store, tenant)
            await capabilities.QUOTAS.of(store).remove_quota(holder)
        print(f"{waiting:7,} waiting, ms a job:", "  ".join(f"{name} {spent:.2f}" for name, spent in figures.items()))
    await store.close()


async def submissions(store: Store, tenant: str) -> float:
    """The fastest in ms: what others on the machine do meanwhile is not the question."""
    spent: list[float] = []
    for _ in range(SUBMISSIONS):
        began = time.perf_counter()
        [answer] = await store.submit([Submission(jobs=[new_job(tenant=tenant)])])
        spent.append(1000 * (time.perf_counter() - began))
        assert isinstance(answer, list), answer
    return min(spent)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
