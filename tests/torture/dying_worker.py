"""A worker that is killed between a claim and the start of what it was given, as by `kill -9` at that very moment.

`python -m tests.torture.dying_worker URL DIRECTORY CONCURRENCY LEASE`. It takes one claim with jobs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ropewalk import App
from tests.torture import jobs
from tests.torture.harness import HISTORY
from tests.torture.history import Recorder


async def main(url: str, directory: Path, concurrency: int, lease: float) -> None:
    jobs.recorder = Recorder(directory / HISTORY)
    async with App(url, jobs=jobs.ALL) as app:
        store: Any = app._app_state.store
        claim = store.claim

        async def claim_and_die(request: object) -> object:
            claimed = await claim(request)
            if claimed.jobs:
                os.kill(os.getpid(), signal.SIGKILL)
                await asyncio.Event().wait()
            return claimed

        store.claim = claim_and_die
        await app.worker(concurrency=concurrency, lease=lease).run()


if __name__ == "__main__":
    url, place, concurrency, lease = sys.argv[1:]
    asyncio.run(main(url, Path(place), int(concurrency), float(lease)))
