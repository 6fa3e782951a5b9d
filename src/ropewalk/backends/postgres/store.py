"""A schema of a PostgreSQL database as a store.

The verbs are those of every SQL store (backends/sql); the statements in `sql/` and the connections are this one's.
Five connections a store, so that what waits for a lock holds up nothing else (connections.py), and one for wake-ups.
What many share waits for no lock for long: whoever has to wait for somebody's open transaction gets one of its own.
What a worker does most is one trip, and goes past their threads (`at_once`). The time is the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import psycopg

from ropewalk.backends.postgres import completion
from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.connections import (
    SHARED_LOCK_WAIT,
    Clock,
    Connector,
    ReadingSession,
    Session,
)
from ropewalk.backends.postgres.diagnosis import facts
from ropewalk.backends.postgres.faults import HeldUp, translated
from ropewalk.backends.postgres.findings import examination
from ropewalk.backends.postgres.handler_transactions import PostgresTransaction
from ropewalk.backends.postgres.notifier import PostgresNotifier
from ropewalk.backends.postgres.opening import ddl_of, migrated, schema_of
from ropewalk.backends.postgres.statements import SQL
from ropewalk.backends.postgres.tx import said
from ropewalk.backends.postgres.user_transactions import Identity, PostgresJoining, StoreIdentity, ask_identity
from ropewalk.backends.postgres.waiting import WaitingSessions
from ropewalk.backends.sql import leases, queries, quotas, steps, submission
from ropewalk.backends.sql.claim import claim as claiming
from ropewalk.backends.sql.claim import single_sublane
from ropewalk.backends.sql.damage import careful
from ropewalk.backends.sql.lanes import KNOWN_MAX, QuotaBook
from ropewalk.backends.sql.store import SqlStore
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.workflow.parents import parents_of
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination
from ropewalk.ports.store.leases import Holder, Note, NoteAnswer, Renewal, Renewed, Settlements
from ropewalk.ports.store.migrations import SchemaState
from ropewalk.ports.store.submission import MustWait, Submission, SubmitAnswer
from ropewalk.ports.store.user_transactions import Join, UserConnection, UserTransaction
from ropewalk.ports.store.workflows import StepAnswer

T = TypeVar("T")


class PostgresStore(SqlStore):
    """`url` as libpq reads it, with `schema` and `notify` among its options. Nothing is opened before it is needed."""

    def __init__(
        self,
        url: str,
        runtime: Runtime,
        *,
        allow_weaker_durability: bool = False,
        migrate: bool = True,
        clock: Clock = "server",
    ) -> None:
        super().__init__(runtime)
        self._address = address = Address.of(url)
        self._clock: Clock = clock
        self._connector = Connector(runtime, address, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
        self._changes = Session(runtime, self._connector, "changes", clock=clock, lock_wait=SHARED_LOCK_WAIT)
        self._waiting = WaitingSessions(runtime, self._connector, clock=clock)
        self._claims = Session(runtime, self._connector, "claims", clock=clock)
        self._settlements = Session(runtime, self._connector, "settlements", clock=clock)
        self._renewals = Session(runtime, self._connector, "renewals", clock=clock)
        self._reads = ReadingSession(runtime, self._connector, "reads", clock=clock)
        for session in (self._changes, self._waiting, self._claims, self._settlements, self._renewals):
            session.on_aside = self._aside.append
        self._notifier = PostgresNotifier(address, runtime)
        self._allow_weaker_durability = allow_weaker_durability
        self._lanes_made: set[LaneName] = set()
        self._joining = PostgresJoining()
        self._house: StoreIdentity | None = None
        self._opened = False

    @property
    def name(self) -> str:
        return "postgresql"

    @property
    def durability(self) -> Durability:
        return self._connector.durability.level

    def watch_durability(self, on_weakened: Callable[[str], object]) -> None:
        self._connector.durability.on_weakened = on_weakened

    @property
    def notifier(self) -> Notifier:
        return self._notifier

    def transaction(self, limit_us: Span) -> UserTransaction:
        return PostgresTransaction(self._runtime, self._connector, clock=self._clock, limit_us=limit_us)

    async def open(self) -> None:
        if not self._opened:
            await self._changes.ask(lambda _: None)  # connected, checked and migrated, or refused
            self._opened = True
            await self._notifier.resume()

    async def close(self) -> None:
        self._opened = False
        self._house = None
        await self._notifier.pause()
        for session in (self._reads, self._renewals, self._settlements, self._claims, self._waiting, self._changes):
            await session.stop()

    async def schema(self) -> SchemaState:
        return await self._look(schema_of)

    async def migrate(self) -> SchemaState:
        return await self._look(migrated)

    async def ddl(self) -> str:
        return await self._look(ddl_of)

    async def _look(self, work: Callable[[Address], T]) -> T:
        try:
            return await self._runtime.in_thread(lambda: work(self._address))
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error

    async def clock(self) -> Instant:
        return await self._reads.ask(lambda tx: tx.now)

    async def examine(self, *, deep: bool = False) -> Examination:
        now, work = await self._reads.ask(lambda tx: (tx.now, queries.work(tx)))
        found = await self._look(facts)
        return examination(found, self.durability, now, work)

    async def join(self, connection: UserConnection, submissions: Sequence[Submission]) -> Join:
        await self.open()
        house = self._house = self._house or await self._identified()
        join = self._joining.join(connection, house)
        wanted = {new.lane for asked in submissions for new in asked.jobs} - self._lanes_made
        if wanted:
            # Not in the user's transaction: until it ended, nobody else could write the same ones.
            await self._write(lambda tx: tx.lanes.ids_of(tx, wanted))
            if len(self._lanes_made) > KNOWN_MAX:
                self._lanes_made.clear()
            self._lanes_made |= wanted
        if any(quota.submissions for quota in house.quotas.known.for_tenants(quotas.outside(submissions)).values()):
            # Nor this: until it ended, nobody else could submit for the same tenants.
            await self._write(lambda tx: quotas.pay(tx, submissions))
        parents = [(new.tenant, ref.id) for asked in submissions for new in asked.jobs for ref in parents_of(new)]
        if parents:
            # Nor this: until it ended, the leases of running parents could not be renewed. A flag too many is harmless.
            named = msgspec.json.encode(sorted(set(parents))).decode()
            await self._write(lambda tx: tx.run(tx.sql.note_live_dependants, (named,)))
        return join

    async def _identified(self) -> StoreIdentity:
        identity = await self._write(lambda tx: tx.row(ask_identity(self._address.schema)))
        assert identity is not None
        return StoreIdentity(
            address=self._address,
            identity=Identity(*identity),
            runtime=self._runtime,
            clock=self._clock,
            allow_weaker_durability=self._allow_weaker_durability,
            quotas=QuotaBook(),
        )

    # ── what must not wait behind other work has a connection of its own

    async def _claim(self, request: ClaimRequest) -> Claimed:
        try:
            claimed = await self._claimed_at_once(request)
            if claimed is None:
                claimed = await self._claims.ask(lambda tx: claiming.claim(tx, tx.lanes, self._cache, request))
        except single_sublane.LeasedUnread as error:
            unread = error
            read_leased = careful(lambda tx: single_sublane.read_leased(tx, tx.lanes, unread), frozenset())
            claimed = await self._claims.ask(read_leased)
        return claimed

    async def _claimed_at_once(self, request: ClaimRequest) -> Claimed | None:
        prepared = single_sublane.prepare(self._cache, request, None)
        if prepared is None:
            return None
        answers = await self._claims.at_once(said(SQL.claim_single_sublane, prepared.values))
        if answers is None:
            return None
        return single_sublane.read_answer(answers[0].fetchone(), prepared, self._cache, request, self._claims.names_of)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        return await completion.settle(self._settlements, owner, settlements)

    async def note(self, note: Note) -> NoteAnswer:
        return await self._settlements.ask(lambda tx: leases.note(tx, note))

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        return await self._settlements.ask(lambda tx: steps.record_step(tx, holder, step))

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        return await self._settlements.ask(lambda tx: steps.take_signal(tx, holder, step, signal))

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        return await self._renewals.ask(lambda tx: leases.renew(tx, owner, renewals))

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        """Submissions share a commit. What has to wait for somebody's open transaction does so on its own."""
        answers = await self._submit_without_waiting(submissions)
        if not wait:
            return answers
        return [
            await self._submit_waiting(asked) if isinstance(answer, MustWait) else answer
            for asked, answer in zip(submissions, answers, strict=True)
        ]

    async def _submit_without_waiting(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        """Keys are not waited for at all. Where another lock does not come soon, halves find out whom that concerns."""
        try:
            return await self._changes.ask(
                lambda tx: submission.submit(tx, tx.lanes, submissions, wait=False),
            )
        except HeldUp:
            if len(submissions) == 1:
                return [MustWait()]
            half = len(submissions) // 2
            parts = [submissions[:half], submissions[half:]]
            return [answer for part in parts for answer in await self._submit_without_waiting(part)]

    async def _submit_waiting(self, asked: Submission) -> SubmitAnswer:
        [answer] = await self._waiting.ask(lambda tx: submission.submit(tx, tx.lanes, [asked]))
        return answer

    async def _write(self, work: Callable[[Tx], T]) -> T:
        """On the connection that all changes share, or on its own where that would hold up the others."""
        try:
            return await self._changes.ask(work)
        except HeldUp:
            return await self._waiting.ask(work)

    async def _read(self, work: Callable[[Tx], T]) -> T:
        return await self._reads.ask(work)
