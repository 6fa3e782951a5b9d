"""One worker process: `python -m tests.torture.worker URL DIRECTORY CONCURRENCY LEASE GRACE`, as harness.Fleet does."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ropewalk import App, Event
from ropewalk.worker.worker import Worker
from tests.torture import flows, jobs
from tests.torture.harness import HISTORY
from tests.torture.history import Recorder

REPORTED_EVERY_SECONDS = 0.1


async def main(url: str, directory: Path, concurrency: int, lease: float, grace: float) -> None:
    recorder = jobs.recorder = Recorder(directory / HISTORY)

    def on_event(event: Event) -> None:
        if event.kind == "succeeded":
            recorder.put("accepted", event.job_id, attempt=event.attempt)
        elif event.kind == "lease_lost":
            recorder.put("lease_lost", event.job_id, attempt=event.attempt, reason=event.message)
        elif event.kind == "group_closed":
            recorder.put("closed", event.job_id)

    def on_error(error: BaseException, phase: str) -> None:
        recorder.put("trouble", reason=f"{type(error).__name__} in {phase}: {error}")

    app = App(url, jobs=[*jobs.ALL, *flows.ALL], on_event=on_event, on_error=on_error)
    worker = app.worker(concurrency=concurrency, lease=lease, grace=grace, poll=0.5)
    async with app:
        teller = asyncio.create_task(tell(worker, recorder))
        await worker.run()
        teller.cancel()
    recorder.put("left")


async def tell(worker: Worker, recorder: Recorder) -> None:
    """That it serves, then how many of its writes were refused, whenever that changes."""
    served, told = False, 0
    while True:
        await asyncio.sleep(REPORTED_EVERY_SECONDS)
        try:
            refused = worker.refused
        except RuntimeError:  # not started yet, or stopping
            continue
        if not served:
            served = True
            recorder.put("serving")
        if refused != told:
            told = refused
            recorder.put("refused", count=refused)


if __name__ == "__main__":
    url, place, concurrency, lease, grace = sys.argv[1:]
    asyncio.run(main(url, Path(place), int(concurrency), float(lease), float(grace)))
