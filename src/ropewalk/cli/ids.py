"""Finds the job or worker that somebody means by a part of its id.

An id may be given whole, or by its beginning or ending if that belongs to only one id. Lists and trees print the
endings of ids, because ids that were made at the same time begin alike.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ropewalk.client.client import Client
from ropewalk.client.filter import Filter
from ropewalk.client.store_client import StoreClient
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.search import Order
from ropewalk.errors import InvalidInput

PAGE: Final = 1000
SEARCHED_MAX: Final = 50_000
"""How many of the newest jobs are searched for an ending."""
NAMED_MAX: Final = 10
"""How many candidates an error names."""


async def job_id(client: Client, given: str) -> str:
    """Return the id with this part, or `given` itself if there is none; raise InvalidInput if there are several."""
    if await client.states([given]):
        return given
    begun = {job.id: job async for job in _jobs(client, Filter(text=given)) if job.id.startswith(given)}
    if not begun:
        begun = {job.id: job async for job in _jobs(client, Filter()) if job.id.endswith(given)}
    return _only(given, begun, "job", [f"{each.id} ({each.type}, {each.state.value})" for each in begun.values()])


async def job_ids(client: Client, given: Iterable[str]) -> list[str]:
    """Return the ids that are meant, so that a wrong one is noticed before anything is done to the first job."""
    return [await job_id(client, each) for each in given]


async def worker_ids(client: StoreClient, given: Iterable[str]) -> list[str]:
    """Return the ids of the workers that are meant."""
    cards = {card.id: card for card in await client.workers()}
    found: list[str] = []
    for each in given:
        meant = [each] if each in cards else [card for card in cards if card.startswith(each) or card.endswith(each)]
        found.append(_only(each, meant, "worker", [f"{one} ({cards[one].host})" for one in meant if one in cards]))
    return found


async def _jobs(client: Client, wanted: Filter) -> AsyncIterator[JobInfo]:
    """Yield the jobs that match, newest first, up to SEARCHED_MAX."""
    cursor = None
    for _ in range(SEARCHED_MAX // PAGE):
        page = await client.search(wanted, order=Order.CREATED_DESC, cursor=cursor, limit=PAGE)
        for job in page.jobs:
            yield job
        cursor = page.next_cursor
        if cursor is None:
            return


def _only(given: str, found: Iterable[str], what: str, candidates: Sequence[str]) -> str:
    ids = list(found)
    if len(ids) < 2:
        return ids[0] if ids else given
    named = "; ".join(candidates[:NAMED_MAX]) + ("; …" if len(ids) > NAMED_MAX else "")
    raise InvalidInput(f"{given!r} is part of {len(ids):,} ids of {what}s, give a longer part: {named}", field="id")
