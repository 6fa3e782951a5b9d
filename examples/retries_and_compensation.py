"""Charge an order, with retries while the bank does not answer, and refund it if it cannot be shipped.

python examples/retries_and_compensation.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import Abort, App, Backoff, Context, State, job


@job
async def refund(ctx: Context, order: str, cents: int) -> str:
    """Undo `charge` if `ship` fails; repeating this is safe, because the bank knows the idempotency key."""
    failed = ctx.compensates
    assert failed is not None
    print(f"{order}: refunding {cents} cents, because {failed.error.message}")
    return f"refund-{ctx.idempotency_key}"


@job(on_failure=refund, max_attempts=2, backoff=Backoff.constant(0.1))
async def ship(order: str, cents: int, country: str) -> str:
    if country == "Atlantis":
        raise Abort("nobody ships to Atlantis")  # permanent: a retry would not help
    print(f"{order}: shipped to {country}")
    return f"parcel-{order}"


@job(max_attempts=5, backoff=Backoff.exponential(0.1, max=5), timeout=10)
async def charge(ctx: Context, order: str, cents: int, country: str) -> str:
    if ctx.attempt < 3:
        print(f"{order}: the bank is away, attempt {ctx.attempt} of {ctx.max_attempts}")
        raise ConnectionError("the bank is away")
    print(f"{order}: charged {cents} cents")
    await ctx.spawn(ship(order, cents, country))  # once, even if this attempt is lost and runs again
    return f"receipt-{order}"


app = App(
    f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'orders.db'}",
    jobs=[charge, ship, refund],
)


async def main() -> None:
    async with app.running() as worker:
        for order, country in (("order-1", "France"), ("order-2", "Atlantis")):
            handle = await app.enqueue(
                charge(order, 4200, country),
                idempotency_key=order,  # a second click on "pay" finds this job
                workflow_id=order,
            )
            await handle.result(timeout=30)
            await worker.idle()
            steps = await app.workflow(order)
            print(f"{order}: " + ", ".join(f"{step.type} {step.state}" for step in steps))
            assert all(step.state in (State.COMPLETED, State.FAILED) for step in steps)


if __name__ == "__main__":
    asyncio.run(main())
