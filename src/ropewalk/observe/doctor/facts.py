"""The facts that the rules of the doctor use. They are gathered at one moment from the store, from another store on the
same data (its twin), and from this machine's clock. Gathering them changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, LIMITS, SCHEDULES
from ropewalk.ports.store.core import Durability, Store
from ropewalk.ports.store.diagnosis import Examination, Work
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.limits import LimitUse


class ClockReading(Struct, frozen=True, kw_only=True):
    """The difference between the store's clock and this machine's."""

    ahead_us: int
    """How far the store's clock is ahead; a negative number means that it is behind."""
    uncertain_us: Span
    """Half of the round trip, by which the reading may be wrong."""


class Late(Struct, frozen=True, kw_only=True):
    """A schedule that is due and has not fired."""

    name: str
    tenant: str
    late_us: Span


class Facts(Struct, frozen=True, kw_only=True):
    """All facts about one store."""

    durability: Durability
    examination: Examination
    workers: list[WorkerCard]
    late: list[Late]
    """The schedules that should have fired, those that are most overdue first."""
    full: list[LimitUse]
    """The limits that are full, of tenants with jobs that could start."""
    clock: ClockReading
    hint_us: Span | None
    """How long a hint took to reach another store on the same data; None if it did not arrive or none was sent."""
    hint_sent: bool
    """Whether a hint was sent, which needs another store on the same data."""


CLOCK_LOOKS: Final = 5
"""The clock of the store is read this many times."""
HINT_SECONDS_MAX: Final = 2.0
"""The examination waits this long for its hint to arrive."""
LATE_MAX: Final = 100
TENANTS_MAX: Final = 20
"""The limits of this many tenants are examined at most."""


async def gather(store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool) -> Facts:
    """Reads all facts.

    `make_twin` makes another store on the same data, as another process has it; None if that is not possible. No hint
    is sent if the store exists only in this process, or if it reports on its wake-ups itself.
    """
    examination = await DIAGNOSIS.of(store).examine(deep=deep)
    in_process = store.durability is Durability.D0
    twin = None if make_twin is None or in_process or examination.wake_ups is not None else make_twin()
    return Facts(
        durability=store.durability,
        examination=examination,
        workers=await store.workers(),
        late=await _late(store, examination.now),
        full=await _full(store, examination.work),
        clock=await _read_clock(store, runtime),
        hint_us=None if twin is None else await _hint_between(store, twin, runtime),
        hint_sent=twin is not None,
    )


async def _late(store: Store, now: Instant) -> list[Late]:
    stored = SCHEDULES.if_declared(store)
    if stored is None:
        return []
    due = (await stored.due_schedules(after=None, limit=LATE_MAX)).schedules
    found = [(each.schedule, each.schedule.next_fire) for each in due if not each.schedule.paused]
    return [Late(name=each.name, tenant=each.tenant, late_us=now - at) for each, at in found if at is not None]


async def _full(store: Store, work: Work) -> list[LimitUse]:
    limits = LIMITS.if_declared(store)
    if limits is None:
        return []
    tenants = sorted({each.lane.tenant for each in work.backlog})[:TENANTS_MAX]
    return [use for tenant in tenants for use in await limits.limits(tenant) if _is_full(use)]


def _is_full(use: LimitUse) -> bool:
    most = use.limit.concurrency
    if most is None:
        return False
    return any(number >= most for number in use.keys.values()) if use.limit.for_each else use.in_use >= most


async def _read_clock(store: Store, runtime: Runtime) -> ClockReading:
    """Returns the quickest of several readings, because it is the least uncertain one."""
    readings: list[ClockReading] = []
    for _ in range(CLOCK_LOOKS):
        before = runtime.now()
        there = await store.clock()
        after = runtime.now()
        readings.append(ClockReading(ahead_us=there - (before + after) // 2, uncertain_us=(after - before) // 2))
    return min(readings, key=lambda each: each.uncertain_us)


async def _hint_between(store: Store, twin: Store, runtime: Runtime) -> Span | None:
    try:
        await twin.open()
        return await _hint(store, twin, runtime)
    finally:
        await twin.close()


async def _hint(store: Store, twin: Store, runtime: Runtime) -> Span | None:
    """Publishes a hint with a random word on one store and returns how long it takes to reach the other one; None if it
    does not arrive."""
    word = f"doctor-{runtime.token()}"
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def listen(hint: Hint) -> None:
        if word in hint.finished:
            loop.call_soon_threadsafe(arrived.set)

    unsubscribe = twin.notifier.subscribe(listen)
    try:
        published_at = runtime.monotonic()
        store.notifier.publish(Hint(finished=(word,)))
        async with asyncio.timeout(HINT_SECONDS_MAX):
            await arrived.wait()
    except TimeoutError:
        return None
    finally:
        unsubscribe()
    return round((runtime.monotonic() - published_at) * SECOND)
