"""Submit a graph of jobs: load regions, check each, report on the good ones, and clean up in any case.

python examples/nightly_report.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import Abort, App, Context, job

REGIONS = {"north": 120, "south": 80, "west": -1}


@job
async def load(region: str) -> int:
    return REGIONS[region]


@job
async def check(ctx: Context) -> int:
    """Check a region; the job that loads it has succeeded, and its result is available here."""
    [loaded] = ctx.dependencies
    turnover: int = loaded.result
    if turnover < 0:
        raise Abort(f"{turnover} is no turnover")
    return turnover


@job
async def report(ctx: Context) -> str:
    good = [each.result for each in ctx.dependencies if each.ending == "completed"]
    return f"{sum(good)} from {len(good)} of {len(ctx.dependencies)} regions"


@job
async def mail(ctx: Context) -> str:
    [written] = ctx.dependencies
    return f"mailed: {written.result}"


@job
async def clean_up() -> str:
    return "cleaned up"


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'night.db'}", jobs=[load, check, report, mail, clean_up])


async def main() -> None:
    loads = [load(region) for region in REGIONS]
    checks = [check().using(depends_on=each) for each in loads]
    summary = report().using(depends_on=checks, when="all_done")
    letter = mail().using(depends_on=summary)
    end = clean_up().using(depends_on=letter, when="all_done")

    # The whole graph is submitted or nothing of it; the order of the jobs does not matter.
    await app.enqueue_many([end, letter, summary, *checks, *loads], workflow_id="night-1")

    async with app.running():
        print(await app.handle(letter.id, mail).result(timeout=30))
        print(await app.handle(end.id, clean_up).result(timeout=30))

    night = await app.workflow("night-1")
    for each in night:
        print(f"{each.type:9} {each.state}")
    print(f"{len(night.edges)} dependencies")


if __name__ == "__main__":
    asyncio.run(main())
