"""A store in one schema of a PostgreSQL database.

The verbs are those of every SQL store (backends/sql). This package has the statements (`sql/`) and the connections. A
store has five connections, so that a request that waits for a lock delays nothing else (connections.py), and one more
for hints. Connections that many callers share do not wait long for a lock: a request that has to wait for the open
transaction of somebody else gets a connection of its own (waiting.py). The most frequent requests of a worker take one
round trip, for which the event loop waits itself (`Session.transact_on_loop`). The time is that of the server.
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
from ropewalk.backends.postgres.faults import LockTimeout, translated
from ropewalk.backends.postgres.findings import examination
from ropewalk.backends.postgres.handler_transactions import PostgresTransaction
from ropewalk.backends.postgres.notifier import PostgresNotifier
from ropewalk.backends.postgres.opening import ddl_of, migrated, schema_of
from ropewalk.backends.postgres.statements import SQL
from ropewalk.backends.postgres.tx import statements_of
from ropewalk.backends.postgres.user_transactions import PostgresJoining, StoreIdentity, TableIdentity, identity_query
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
    """The store at `url`, which is a URL as libpq reads it, with `schema` and `notify` among its options. Nothing is
    opened before it is needed."""

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
        self._identity: StoreIdentity | None = None
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
            await self._changes.ask(lambda _: None)  # This connects, checks and migrates, or raises.
            self._opened = True
            await self._notifier.resume()

    async def close(self) -> None:
        self._opened = False
        self._identity = None
        await self._notifier.pause()
        for session in (self._reads, self._renewals, self._settlements, self._claims, self._waiting, self._changes):
            await session.stop()

    async def schema(self) -> SchemaState:
        return await self._on_own_connection(schema_of)

    async def migrate(self) -> SchemaState:
        return await self._on_own_connection(migrated)

    async def ddl(self) -> str:
        return await self._on_own_connection(ddl_of)

    async def _on_own_connection(self, work: Callable[[Address], T]) -> T:
        try:
            return await self._runtime.in_thread(lambda: work(self._address))
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error

    async def clock(self) -> Instant:
        return await self._reads.ask(lambda tx: tx.now)

    async def examine(self, *, deep: bool = False) -> Examination:
        now, work = await self._reads.ask(lambda tx: (tx.now, queries.open_work(tx)))
        found = await self._on_own_connection(facts)
        return examination(found, self.durability, now, work)

    async def join(self, connection: UserConnection, submissions: Sequence[Submission]) -> Join:
        await self.open()
        identity = self._identity = self._identity or await self._identified()
        join = self._joining.join(connection, identity)
        wanted = {new.lane for asked in submissions for new in asked.jobs} - self._lanes_made
        if wanted:
            # In the user's transaction, the new lanes would be locked until its end, and nobody else could write them.
            await self._write(lambda tx: tx.lanes.ids_of(tx, wanted))
            if len(self._lanes_made) > KNOWN_MAX:
                self._lanes_made.clear()
            self._lanes_made |= wanted
        if any(
            quota.submissions
            for quota in identity.quotas.known.for_tenants(quotas.tenants_outside(submissions)).values()
        ):
            # In the user's transaction, the charges would be locked, and nobody else could submit for these tenants.
            await self._write(lambda tx: quotas.charge_rates(tx, submissions))
        parents = [(new.tenant, ref.id) for asked in submissions for new in asked.jobs for ref in parents_of(new)]
        if parents:
            # In the user's transaction, the parents would be locked, and their leases could not be renewed. A flag that
            # turns out to be unnecessary is harmless.
            named = msgspec.json.encode(sorted(set(parents))).decode()
            await self._write(lambda tx: tx.run(tx.sql.note_live_dependants, (named,)))
        return join

    async def _identified(self) -> StoreIdentity:
        """Reads the identity of the store once, so that connections of users can be compared with it."""
        found = await self._write(lambda tx: tx.row(identity_query(self._address.schema)))
        assert found is not None
        return StoreIdentity(
            address=self._address,
            identity=TableIdentity(*found),
            runtime=self._runtime,
            clock=self._clock,
            allow_weaker_durability=self._allow_weaker_durability,
            quotas=QuotaBook(),
        )

    # ── verbs that must not wait behind other work, and so have connections of their own

    async def _claim(self, request: ClaimRequest) -> Claimed:
        try:
            claimed = await self._claim_on_loop(request)
            if claimed is None:
                claimed = await self._claims.ask(lambda tx: claiming.claim(tx, tx.lanes, self._cache, request))
        except single_sublane.LeasedUnread as error:
            unread = error
            read_leased = careful(lambda tx: single_sublane.read_leased(tx, tx.lanes, unread), frozenset())
            claimed = await self._claims.ask(read_leased)
        return claimed

    async def _claim_on_loop(self, request: ClaimRequest) -> Claimed | None:
        """Tries to claim in one round trip on the event loop. Returns None if that is impossible."""
        prepared = single_sublane.prepare(self._cache, request, None)
        if prepared is None:
            return None
        answers = await self._claims.transact_on_loop(statements_of(SQL.claim_single_sublane, prepared.values))
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
        """Submits all submissions in one transaction, except those that have to wait for the open transaction of
        somebody else: each of these gets a transaction of its own."""
        answers = await self._submit_without_waiting(submissions)
        if not wait:
            return answers
        return [
            await self._submit_waiting(asked) if isinstance(answer, MustWait) else answer
            for asked, answer in zip(submissions, answers, strict=True)
        ]

    async def _submit_without_waiting(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        """Submits without waiting for idempotency keys. If another lock is not available soon, the submissions are
        tried in halves, to find those that have to wait."""
        try:
            return await self._changes.ask(
                lambda tx: submission.submit(tx, tx.lanes, submissions, wait=False),
            )
        except LockTimeout:
            if len(submissions) == 1:
                return [MustWait()]
            half = len(submissions) // 2
            parts = [submissions[:half], submissions[half:]]
            return [answer for part in parts for answer in await self._submit_without_waiting(part)]

    async def _submit_waiting(self, asked: Submission) -> SubmitAnswer:
        [answer] = await self._waiting.ask(lambda tx: submission.submit(tx, tx.lanes, [asked]))
        return answer

    async def _write(self, work: Callable[[Tx], T]) -> T:
        """Runs work on the connection that all changes share, or on one of its own if it would delay the others
        there."""
        try:
            return await self._changes.ask(work)
        except LockTimeout:
            return await self._waiting.ask(work)

    async def _read(self, work: Callable[[Tx], T]) -> T:
        return await self._reads.ask(work)
