"""`python -m tests.runners.doomed_worker <handler>`: prints what its handler tells, until it is killed."""

from __future__ import annotations

import asyncio
import sys

from ropewalk import AppDefaults, Bounds
from ropewalk.runners.processes import ProcessPool
from ropewalk.runtime.system import SystemRuntime
from tests.runners import deadly
from tests.runners.recording import Recording


class Telling(Recording):
    def progress(self, percent: float, message: str | None) -> None:
        print(message, flush=True)


async def main(handler: str) -> None:
    pool = ProcessPool(size=1, bounds=Bounds(), defaults=AppDefaults(), runtime=SystemRuntime(), report=print)
    await pool.run(Telling(getattr(deadly, handler)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
