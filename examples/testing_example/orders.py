"""The app that test_orders.py tests: an order is confirmed at once, with a reminder a day later if it is not paid."""

from __future__ import annotations

from ropewalk import App, Backoff, Context, job


class Mailer:
    """Stand for a function that sends mail."""

    def __init__(self) -> None:
        self.sent: list[str] = []


mailer = Mailer()


@job
async def remind(order: str) -> None:
    mailer.sent.append(f"remember {order}")


@job(max_attempts=3, backoff=Backoff.constant(60))
async def confirm(ctx: Context, order: str) -> str:
    if order == "unlucky" and ctx.attempt == 1:
        raise ConnectionError("the mail server is away")
    mailer.sent.append(f"thank you for {order}")
    return await ctx.spawn(remind(order).using(delay=24 * 3600))


app = App("sqlite:///orders.db", jobs=[confirm, remind])
