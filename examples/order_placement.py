"""Place an order: the order and its job are written in one commit, so no outbox is needed.

python examples/order_placement.py [file.db]
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing

from ropewalk import App, job, sqlite3

FILE = sys.argv[1] if len(sys.argv) > 1 else "orders.db"


@job
async def send_receipt(order: str, cents: int) -> str:
    return f"receipt for {order}: {cents / 100:.2f}"


@job
async def reserve(order: str, item: str) -> str:
    return f"{item} reserved for {order}"


app = App(f"sqlite:///{FILE}", jobs=[send_receipt, reserve])


def place(order: str, prices: dict[str, int]) -> str:
    """Place an order as a web handler would; if anything raises here, neither order nor job exists."""
    with closing(sqlite3.connect(FILE)) as db, db:
        reserving = [reserve(order, item) for item in prices]
        app.sync.enqueue_many(reserving, connection=db)
        receipt = send_receipt(order, sum(prices.values())).using(depends_on=reserving)
        queued = app.sync.enqueue(receipt, connection=db)
        db.execute("INSERT INTO orders VALUES (?, ?)", (order, sum(prices.values())))  # if this fails, no job is queued
        return queued.id


def orders() -> list[str]:
    with closing(sqlite3.connect(FILE)) as db:
        return [order for (order,) in db.execute("SELECT id FROM orders ORDER BY id")]


async def main() -> None:
    async with app.running():  # creates the file, to which your own tables are added
        with closing(sqlite3.connect(FILE)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, cents INTEGER CHECK (cents > 0))")
        receipt = await asyncio.to_thread(place, "order-1", {"lamp": 4200, "bulb": 300})
        print(await app.handle(receipt, send_receipt).result(timeout=10))
        for order, prices in (("order-1", {"chair": 9900}), ("order-2", {"gift": 0})):
            try:
                await asyncio.to_thread(place, order, prices)
            except sqlite3.IntegrityError as error:
                print(f"{order} was refused: {error}")
        print(f"orders: {', '.join(orders())}; jobs: {await app.count()}")


if __name__ == "__main__":
    asyncio.run(main())
