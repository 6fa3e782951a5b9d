"""The server is gone for good and another takes over: nothing acknowledged is lost, and nobody restarts anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from ropewalk import App, State, job
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.core import Durability
from tests.servers.binaries import Lane, postgres_binaries
from tests.servers.postgres import USER, Postgres, Settings
from tests.servers.standby import Standby

pytestmark = pytest.mark.asyncio

JOBS: Final = 200
RESUME_SECONDS_MAX: Final = 30.0
SETTINGS: Final = Settings(durable=True, others={"wal_level": "replica", "max_wal_senders": "4"})


@job
async def work(number: int) -> int:
    return number


@pytest.fixture
def pair(postgres_lane: Lane) -> Iterator[tuple[Postgres, Standby]]:
    with ExitStack() as running:
        binaries = postgres_binaries(postgres_lane)
        primary = running.enter_context(Postgres(binaries, SETTINGS))
        standby = running.enter_context(Standby(binaries, primary, SETTINGS))
        standby.follow()
        yield primary, standby


async def acknowledged(app: App, number: int) -> str | None:
    """The id of the job, once somebody vouched for it; None where nobody can say."""
    try:
        return (await app.enqueue(work(number=number))).id
    except RopewalkError:
        return None


async def test_a_standby_takes_over(pair: tuple[Postgres, Standby]) -> None:
    """live-4, safe-2: D3 survives the loss of a node, and the same app goes on within 30 s."""
    primary, standby = pair
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    async with App(f"postgresql://{USER}@{hosts}/postgres", jobs=[work]) as app:
        assert app.durability is Durability.D3
        before = [(await app.enqueue(work(number=number))).id for number in range(JOBS)]
        primary.stop("immediate")
        standby.promote()
        began = time.monotonic()
        after: list[str] = []
        while len(after) < JOBS:
            known = await acknowledged(app, JOBS + len(after))
            if known is None:
                assert time.monotonic() - began < RESUME_SECONDS_MAX
                await asyncio.sleep(0.05)
            else:
                after.append(known)
        states = await app.states([*before, *after])
        assert set(states) == {*before, *after}, "an acknowledged job is gone"
        async with app.worker(concurrency=10), asyncio.timeout(RESUME_SECONDS_MAX):
            while set((await app.states([*before, *after])).values()) != {State.COMPLETED}:
                await asyncio.sleep(0.05)


async def test_of_several_hosts_the_one_that_takes_writes_is_used(pair: tuple[Postgres, Standby]) -> None:
    """B6: the order of the hosts says nothing about who is the primary."""
    primary, standby = pair
    hosts = f"127.0.0.1:{standby.port},127.0.0.1:{primary.port}"
    async with App(f"postgresql://{USER}@{hosts}/postgres", jobs=[work]) as app:
        handle = await app.enqueue(work(number=1))
        assert (await app.states([handle.id])) == {handle.id: State.SCHEDULED}
