"""Resume an import: its worker is stopped in the middle, and another one continues from the checkpoint.

python examples/progress_and_checkpoints.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import App, Context, job

ROWS = 300
half_way = asyncio.Event()


@job
async def import_rows(ctx: Context, rows: int) -> int:
    done = ctx.last_checkpoint or 0
    print(f"attempt {ctx.attempt} starts at row {done}")
    for row in range(done, rows):
        await asyncio.sleep(0.001)  # stands for work on the row
        ctx.progress(100 * (row + 1) / rows, f"row {row + 1}")
        if (row + 1) % 100 == 0:
            await ctx.checkpoint(row + 1)  # durable; rows after the last checkpoint may be imported twice
        if row + 1 == 150 and not half_way.is_set():
            half_way.set()
            await asyncio.sleep(60)  # the worker is stopped here
    return rows


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'import.db'}", jobs=[import_rows])


async def main() -> None:
    handle = await app.enqueue(import_rows(ROWS))

    async with app.worker(grace=0):  # stops without waiting for its handlers
        await half_way.wait()
    info = await handle.status()
    assert info.progress is not None and info.progress.percent >= 33
    print(f"stopped: it is {info.state} again, and has used {info.attempt} attempts")

    async with app.worker():
        print(f"imported {await handle.result(timeout=30)} rows")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
