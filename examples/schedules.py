"""Declare a schedule in code, create another one at run time, pause and trigger them, and watch them fire.

python examples/schedules.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime

from ropewalk import App, Event, Job, job, schedule

TICKS = 3
fired: asyncio.Queue[str] = asyncio.Queue()


@job
async def tick(number: int) -> int:
    return number


@job
async def report(kind: str) -> str:
    return f"{kind} report written"


def next_tick(fire: datetime) -> Job[int, int]:
    """Return the job of a fire, with the time at which the fire was due."""
    return tick(fire.microsecond // 100_000)


def on_event(event: Event) -> None:
    if event.kind == "schedule_fired":
        fired.put_nowait(f"{event.schedule} fired")


app = App(
    f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'schedules.db'}",
    jobs=[tick, report],
    schedules=[
        schedule("ticking", every=0.2, run=next_tick),
        schedule("nightly", cron="30 3 * * *", timezone="Europe/Oslo", job=report("sales"), missed="once"),
    ],
    on_event=on_event,
)


async def main() -> None:
    async with app.running():
        for _ in range(TICKS):
            print(await fired.get())
        await app.pause_schedule("ticking")

        # A schedule that was edited at run time is no longer changed by the code that declares it.
        nightly = await app.edit_schedule("nightly", job=report("weather"))
        print(f"nightly: {nightly.when}, generation {nightly.generation}")
        triggered = await app.trigger_schedule("nightly")
        print((await app.wait(triggered.id, timeout=30)).result)

        await app.create_schedule("newest", every=3600, job=tick(7))
        for info in await app.schedules():
            print(f"{info.name:8} {'paused' if info.paused else 'active'}  {info.when}")


if __name__ == "__main__":
    asyncio.run(main())
