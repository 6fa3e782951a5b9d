"""Claims of remote workers: how they wait for jobs, and how those of one server share one poll.

Of the claims that wait for the same types only the first one asks the store, whenever a hint arrives, a job comes due
or a second has passed. When it has got jobs it leaves, and the next one asks at once, because there may be more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from ropewalk.domain.jobs.outcome import Released
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.transition import decide
from ropewalk.domain.time import SECOND, Span
from ropewalk.errors import RopewalkError, StoreUnavailable
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.remote_workers.contact import ClaimLines
from ropewalk.http.remote_workers.held import Held, held_by
from ropewalk.http.remote_workers.lease_shapes import WAIT_SECONDS_MAX, Claim, Claimed, Lease
from ropewalk.http.remote_workers.leases import lease_of, lease_us_of
from ropewalk.http.request import BODY_BYTES_MAX, Disconnected
from ropewalk.http.service import Service
from ropewalk.http.wire import iso_duration, seconds
from ropewalk.observe.publish import Change, publish
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.claims import Claimed as StoreClaimed
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.consequences import Consequences
from ropewalk.runtime.wake import Wake

POLL_SECONDS: Final = 1.0
"""A waiting claim asks the store this often even if no hint arrives. Its worker's card is read again as often."""
EVERY_TICKET: Final = 1 << 62
"""Every job that a remote worker claims counts as started: it claims for free slots only."""


class _Ask(NamedTuple):
    """What one claim may take."""

    types: Mapping[str, Span]
    queues: tuple[str, ...] | None


async def claim(call: Call[Claim, NoQuery]) -> Claimed:
    """Waits for jobs and claims them. Raises Disconnected if the caller has gone, after giving back what it got."""
    waiting = _WaitingClaim(call, await held_by(call, call.body.worker_id))
    work = asyncio.ensure_future(waiting.run())
    ends = [asyncio.ensure_future(each) for each in (call.request.disconnected(), call.service.draining.wait())]
    try:
        await asyncio.wait((work, *ends), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            waiting.stop(caller_has_gone=ends[0].done())
        claimed = await asyncio.shield(work)
        if ends[0].done():
            await waiting.undo()
            raise Disconnected
        return claimed
    finally:
        if not work.done():  # The server stops without waiting for this request.
            waiting.stop(caller_has_gone=True)
        for each in ends:
            each.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


class _WaitingClaim:
    """One claim, until it is answered."""

    def __init__(self, call: Call[Claim, NoQuery], held: Held) -> None:
        self._call = call
        self._service: Service = call.service
        self._held = held
        self._runtime = call.service.runtime
        self._began_at = self._read_at = self._runtime.monotonic()
        self._seconds = min(seconds(call.body.wait, "wait"), WAIT_SECONDS_MAX)
        self._wake = Wake(self._runtime)
        self._ask = self._may_take()
        self._room = {name: int(most) for name, most in call.body.room.items()}
        self._stopped = call.service.draining.is_set()
        self._caller_has_gone = False
        self._leased: list[JobRecord] = []
        """The jobs that the answer contains."""
        self._lines: ClaimLines = call.service.claim_lines

    def stop(self, *, caller_has_gone: bool) -> None:
        """Has the claim end. What a claim that is under way brings is answered, or given back if nobody is there."""
        self._stopped = True
        self._caller_has_gone = caller_has_gone
        self._wake.set()

    async def run(self) -> Claimed:
        unsubscribe = self._service.store.notifier.subscribe(self._hint)
        try:
            return await self._wait()
        finally:
            unsubscribe()
            self._lines.leave(self._wake)

    async def _wait(self) -> Claimed:
        key = self._key()
        while True:
            pause = POLL_SECONDS
            if self._stopped or self._held.card.draining:
                return self._answer([], self._waited())
            if not self._free_slots():
                self._lines.leave(self._wake)  # It can take nothing now, and the others must not wait for it.
            elif self._lines.is_first(key, self._wake):
                waited = self._waited()
                claimed = await self._claim()
                if claimed.jobs:
                    return self._answer(await self._leases(claimed), waited)
                if claimed.next_due is not None:
                    pause = min(pause, max(0.001, (claimed.next_due - claimed.now) / SECOND))
            left = self._seconds - self._waited()
            if left <= 0:
                return self._answer([], self._waited())
            await self._wake.wait(min(left, pause))
            await self._read_again()

    async def undo(self) -> None:
        """Gives back what was claimed, because nobody is there to get the answer."""
        await self._give_back(self._leased)
        self._leased = []

    def _key(self) -> Hashable:
        """Returns what decides which jobs the claim can get. Claims with the same key can ask for one another."""
        suspect = any(job.suspect for job in self._held.jobs.values())
        room = tuple(sorted(self._room.items()))
        return tuple(sorted(self._ask.types)), self._ask.queues, self._held.card.tenants, room, suspect

    async def _read_again(self) -> None:
        """Reads again what the worker holds if that is a while ago: it may drain now, or have a free slot."""
        now = self._runtime.monotonic()
        if not self._stopped and now - self._read_at >= POLL_SECONDS:
            self._held, self._read_at = await held_by(self._call, self._held.card.id), now

    async def _claim(self) -> StoreClaimed:
        held, free = self._held, self._free_slots()
        request = ClaimRequest(
            owner=held.card.id,
            types=self._ask.types,
            tenants=held.card.tenants,
            queues=self._ask.queues,
            slots=free,
            limit=free,
            room=self._room,
            suspects=Suspects.of((job for job in held.jobs.values() if job.suspect), 1),
            first_ticket=1,
            started_upto=EVERY_TICKET,
            turn=int(self._runtime.random() * (1 << 31)),
            take_back_until=self._lines.contact.take_back_until(),
        )
        self._lines.contact.beat()
        asked_at = self._runtime.monotonic()
        try:
            claimed = await self._service.store.claim(request)
        except StoreUnavailable:
            self._lines.contact.failed()
            raise
        self._lines.contact.answered("claim", asked_at, claimed.now)
        self._publish(claimed)
        return claimed

    async def _leases(self, claimed: StoreClaimed) -> list[Lease]:
        """Makes the leases to send. Gives back what nobody would get: all of them if the caller has gone, and those
        that do not fit into one answer."""
        try:
            leases = await self._fitting(claimed)
        except BaseException:
            await self._give_back(claimed.jobs)
            raise
        if self._caller_has_gone:
            leases = []
        self._leased = claimed.jobs[: len(leases)]
        await self._give_back(claimed.jobs[len(leases) :])
        return leases

    async def _fitting(self, claimed: StoreClaimed) -> list[Lease]:
        """Makes as many leases as fit into one answer, and at least one."""
        leases: list[Lease] = []
        size = 0
        for job in claimed.jobs:
            lease = await lease_of(self._service, job, claimed.now)
            size += len(msgspec.json.encode(lease))
            if size > BODY_BYTES_MAX and leases:
                break
            leases.append(lease)
        return leases

    async def _give_back(self, jobs: list[JobRecord]) -> None:
        if jobs:
            with suppress(RopewalkError):  # A heartbeat that does not name them gives them back, too.
                await give_back(self._service, self._held.card.id, jobs)

    def _publish(self, claimed: StoreClaimed) -> None:
        for job in claimed.jobs:
            self._service.app_state.events.emit_about(job, "started")
        if claimed.moved or claimed.closed or claimed.passed_over:
            consequences = Consequences(moved=claimed.moved, closed=claimed.closed, passed_over=claimed.passed_over)
            app_state = self._service.app_state
            publish(
                (), store=app_state.store, events=app_state.events, runtime=app_state.runtime, consequences=consequences
            )

    def _may_take(self) -> _Ask:
        """Returns what the worker is registered for, as far as its token reaches now and this server knows the type."""
        card, identity, registry = self._held.card, self._call.identity, self._service.registry
        names = [each for each in card.types if each in registry and (identity.types is None or each in identity.types)]
        queues = card.queues
        if identity.queues is not None:
            queues = tuple(sorted(identity.queues.intersection(queues) if queues is not None else identity.queues))
        return _Ask({each: lease_us_of(registry.get(each)) for each in names}, queues)

    def _free_slots(self) -> int:
        return min(int(self._call.body.slots), self._held.free_slots)

    def _hint(self, hint: Hint) -> None:
        queues = self._ask.queues
        if hint.many or hint.control or (hint.ready and (queues is None or not set(hint.ready).isdisjoint(queues))):
            self._wake.set_threadsafe()

    def _waited(self) -> float:
        return self._runtime.monotonic() - self._began_at

    def _answer(self, leases: list[Lease], waited: float) -> Claimed:
        return Claimed(jobs=leases, waited=iso_duration(round(waited * SECOND)), drain=self._held.card.draining)


async def give_back(service: Service, owner: str, jobs: list[JobRecord]) -> None:
    """Releases leases with their attempts, because their worker never learned of them."""
    app_state = service.app_state
    settlements = [decide(job, Released(), BUILT_IN, 0.0) for job in jobs]
    answers = await app_state.store.settle(owner, settlements)
    changes = [
        Change(answer.job, answer.move, None)
        for answer in answers.settled
        if answer.job is not None and answer.move is not None
    ]
    publish(
        changes,
        store=app_state.store,
        events=app_state.events,
        runtime=app_state.runtime,
        consequences=answers.consequences,
    )
