"""Work that computes, in processes of its own: it uses every core, and can be stopped for real.

python examples/cpu_work.py [file.db]
"""

from __future__ import annotations

import asyncio
import os
import sys

from ropewalk import App, Context, State, job


@job(executor="process")
def primes_below(ctx: Context, limit: int) -> int:
    """A plain function. The context works here too: what it says travels to the worker."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    ctx.progress(100, f"process {os.getpid()}")
    return sum(sieve)


@job(executor="process", timeout=0.5, max_attempts=1)
def never_ends() -> None:
    while True:
        pass


app = App(
    f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'cpu.db'}",
    jobs=[primes_below, never_ends],
)


async def main() -> None:
    async with app.running(concurrency=2):
        handles = await app.enqueue_many([primes_below(limit) for limit in (10, 1_000, 100_000)])
        for handle in handles:
            print(f"primes: {await handle.result(timeout=30)}")

        stuck = await app.enqueue(never_ends())
        info = await app.wait(stuck.id, timeout=30)
        assert info.state is State.DEAD_LETTER and info.error is not None
        print(f"{info.state}: {info.error.message}")


# Handlers are found by importing this file again in their own process: what the script does stands behind this.
if __name__ == "__main__":
    asyncio.run(main())
