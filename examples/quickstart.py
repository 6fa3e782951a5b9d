"""Run two job types in one process: enqueue jobs, wait for results, and read a job's state.

python examples/quickstart.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import App, Context, job


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(max_attempts=5, timeout=30)
async def greet(ctx: Context, name: str) -> str:
    ctx.progress(50, "thinking of something nice")
    return f"hello {name}, this is attempt {ctx.attempt}"


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'quickstart.db'}", jobs=[add, greet])


async def main() -> None:
    async with app.running():  # the client, and a worker in this process
        total = await app.enqueue(add(1, b=2)).result()  # typed: int
        print(f"1 + 2 = {total}")

        handle = await app.enqueue(greet("Ada"), tags={"team": "engines"})  # durable now
        print(await handle.result(timeout=10))

        for entry in await app.history(handle.id):
            print(f"  {entry.rev}. {entry.kind}")


if __name__ == "__main__":
    asyncio.run(main())
