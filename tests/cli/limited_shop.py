"""An app whose code declares limits, for the command line."""

from __future__ import annotations

import os

from ropewalk import App, Limit, Rate, job


@job(limit=Limit(concurrency=4))
async def export(table: str) -> None: ...


@job(limit=Limit(key="mail", rate=Rate(50, per=1)))
async def invite(to: str) -> None: ...


@job(limit=Limit(key=lambda given: str(given["customer"]), concurrency=1))
async def bill(customer: str) -> None: ...


@job(limit="mail")
async def remind(to: str) -> None: ...


app = App(os.environ.get("SHOP_URL"), jobs=[export, invite, bill, remind])
