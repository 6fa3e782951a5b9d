"""One worker process on any store: `python -m tests.torture.fair_worker URL HISTORY`. Started by test_fairness.py."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ropewalk import App
from tests.torture import jobs
from tests.torture.history import Recorder

CONCURRENCY = 4


async def main(url: str, history: Path) -> None:
    recorder = jobs.recorder = Recorder(history)
    app = App(url, jobs=[jobs.serve], allow_weaker_durability=True)
    async with app, app.worker(concurrency=CONCURRENCY):
        recorder.put("serving")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
