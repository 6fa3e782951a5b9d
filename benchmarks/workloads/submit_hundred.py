"""A hundred concurrent callers on one loop: what sharing a commit brings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from benchmarks.measurement import Measurement, rate
from benchmarks.run import Run
from benchmarks.workloads.workload import Workload

CALLERS: Final = 100


async def submit_concurrently(run: Run) -> Measurement:
    numbers = iter(run.jobs)
    began = time.perf_counter()
    await asyncio.gather(*(_caller(run, numbers) for _ in range(CALLERS)))
    seconds = time.perf_counter() - began
    return rate(await run.verify(completed=False), seconds)


async def _caller(run: Run, numbers: Iterator[int]) -> None:
    for number in numbers:
        await run.subject.submit(number)


SUBMIT_HUNDRED = Workload(
    name="submit-100",
    about="a hundred concurrent callers",
    procedure=submit_concurrently,
    jobs=10_000,
    quick_jobs=1_000,
    workers=0,
)
