"""Run handlers that compute in processes of their own, which use every core and can be stopped at any time.

python examples/cpu_work.py [file.db]
"""

from __future__ import annotations

import asyncio
import os
import sys

from ropewalk import App, Context, State, job


@job(executor="process")
def primes_below(ctx: Context, limit: int) -> int:
    """Count primes in a handler process; what the context reports is sent to the worker."""
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


# Handler processes import this file again to find the handlers, so the script must not run then.
if __name__ == "__main__":
    asyncio.run(main())
