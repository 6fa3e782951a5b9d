"""Everything that the rules look at, gathered at one moment from the store, its twin and this machine's clock.

Nothing is changed by it.
"""

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
    """The store's clock against this machine's."""

    ahead_us: int
    """negative: it is behind"""
    uncertain_us: Span
    """half of the round trip: it may be off by so much"""


class Late(Struct, frozen=True, kw_only=True):
    """A schedule whose time has come and gone."""

    name: str
    tenant: str
    late_us: Span


class Facts(Struct, frozen=True, kw_only=True):
    durability: Durability
    examination: Examination
    workers: list[WorkerCard]
    late: list[Late]
    """schedules that should have fired, the latest first"""
    full: list[LimitUse]
    """limits that leave no room, of tenants whose jobs could start"""
    clock: ClockReading
    hint_us: Span | None
    """How long a hint took to another store on the same data. None: it did not arrive, or none was sent."""
    hint_sent: bool
    """Whether there was another store on the same data to send a hint to."""


CLOCK_LOOKS: Final = 5
HINT_SECONDS_MAX: Final = 2.0
LATE_MAX: Final = 100
TENANTS_MAX: Final = 20
"""whose limits are looked at"""


async def gather(store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool) -> Facts:
    """Ask for everything.

    `make_twin` makes another store on the same data, such as another process has; None where that is not possible. A
    store that lives in one process has nobody else to wake, and one that speaks of its wake-ups itself is believed.
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
    """Of several looks the quickest: it leaves least room for doubt."""
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
    """Publish a hint on one store that only the listener of the other one knows, and wait until it arrives there."""
    word = f"doctor-{runtime.token()}"
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def listen(hint: Hint) -> None:
        if word in hint.finished:
            loop.call_soon_threadsafe(arrived.set)

    unsubscribe = twin.notifier.subscribe(listen)
    try:
        said_at = runtime.monotonic()
        store.notifier.publish(Hint(finished=(word,)))
        async with asyncio.timeout(HINT_SECONDS_MAX):
            await arrived.wait()
    except TimeoutError:
        return None
    finally:
        unsubscribe()
    return round((runtime.monotonic() - said_at) * SECOND)
