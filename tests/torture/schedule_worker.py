"""One scheduler process: `python -m tests.torture.schedule_worker URL DIRECTORY`. Started by test_scheduling.py.

Beside the history lies what it fired, a line a fire, written after the commit: whole or absent, whoever is killed when.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from ropewalk import App, Event, job, schedule
from ropewalk.worker.worker import Worker
from tests.torture.harness import HISTORY
from tests.torture.history import Recorder

FIRED: Final = "fired.txt"


@job
async def beat(name: str) -> str:
    return name


SCHEDULES: Final = [
    schedule("quick", every=0.2, job=beat("quick"), missed="all"),
    schedule("odd", every=0.37, job=beat("odd"), missed="all"),
    schedule("seconds", cron="* * * * * *", timezone="Europe/Oslo", job=beat("seconds"), missed="all"),
    schedule("one at a time", every=0.3, job=beat("key").using(idempotency_key="key"), missed="all"),
]


async def main(url: str, directory: Path) -> None:
    recorder = Recorder(directory / HISTORY)
    fired = os.open(directory / FIRED, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def on_event(event: Event) -> None:
        if event.kind == "schedule_fired":
            assert event.fire_time is not None
            os.write(fired, f"{os.getpid()}|{event.schedule}|{event.fire_time.isoformat()}|{event.job_id}\n".encode())

    def on_started(_: Worker) -> None:
        recorder.put("serving")

    app = App(url, jobs=[beat], schedules=SCHEDULES, on_event=on_event)
    async with app:
        await app.worker(concurrency=4, lease=2, poll=0.5).run(on_started=on_started)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
