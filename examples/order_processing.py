"""Process an order step by step: each job queues the next, and a failed payment gives the stock back.

python examples/order_processing.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys

from ropewalk import Abort, App, Context, Result, State, job

stock = {"lamp": 2, "chair": 5}


@job
async def give_back(item: str, amount: int) -> None:
    """Undo `pay`, whose compensation this is; it gets those arguments of `pay` that it names."""
    stock[item] += amount
    print(f"  {amount} × {item} given back")


@job
async def ship(item: str, amount: int) -> str:
    return f"parcel with {amount} × {item}"


@job(on_failure=give_back)
async def pay(ctx: Context, item: str, amount: int, card: str) -> Result[str, str]:
    if card == "expired":
        raise Abort("the card is expired")
    return ctx.continue_with(ship(item, amount))


@job
async def reserve(ctx: Context, item: str, amount: int, card: str) -> Result[str, str]:
    """Reserve the stock in the transaction that completes this job and queues the next one."""
    if stock[item] < amount:
        raise Abort(f"only {stock[item]} × {item} left")
    stock[item] -= amount
    return ctx.continue_with(pay(item, amount, card))


app = App(
    f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'orders.db'}",
    jobs=[reserve, pay, ship, give_back],
)


async def main() -> None:
    async with app.running():
        good = await app.enqueue(reserve("lamp", 1, card="valid"))
        print(f"order 1: {await good.chain(timeout=30)}")
        for step in await app.chain(good.id):
            print(f"  {step.type}: {step.state}")

        bad = await app.enqueue(reserve("chair", 3, card="expired"))
        await bad.group(timeout=30)  # wait for the order and every job under it, the compensation included
        steps = {step.type: step.state for step in await app.chain(bad.id)}
        assert steps == {"reserve": State.COMPLETED, "pay": State.FAILED}
        print(f"order 2: {(await app.chain(bad.id))[-1].state}, chairs in stock: {stock['chair']}")


if __name__ == "__main__":
    asyncio.run(main())
