"""Threads that each own one connection: a request is one transaction, run again where others were in the way.

What waits for a lock on one connection holds up nobody on another, so that renewals never stand behind a long
settlement. A connection that broke is never used again; before the commit nothing happened, during it nobody knows.
While its thread does not use one, a loop may: for a whole transaction in one trip (`Session.at_once`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import psycopg

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.durability import DurabilityWatch, settings_of
from ropewalk.backends.postgres.faults import HeldUp, breaks_connection, may_run_again, met_damage, translated
from ropewalk.backends.postgres.opening import PREPARED_MAX, TooWeak, open_store
from ropewalk.backends.postgres.statements import CAREFUL, CAREFUL_READING, READING, SQL
from ropewalk.backends.postgres.tx import Tx
from ropewalk.backends.postgres.wire.connection import (
    SILENCE_SECONDS_MAX,
    Silence,
    WatchedConnection,
    has_come,
    may_watch,
)
from ropewalk.backends.postgres.wire.pipeline import Pipeline
from ropewalk.backends.postgres.wire.statement import Reply, Statement
from ropewalk.backends.postgres.wire.transaction import COMMIT, ROLLBACK, PipelinedTransaction
from ropewalk.backends.sql.connection_thread import ConnectionThread, Request, deliver
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statements import Statements
from ropewalk.domain.growing_pause import GrowingPause
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.runtime import Runtime

T = TypeVar("T")
Clock: TypeAlias = Literal["server", "runtime"]

TRIES_MAX: Final = 10
AGAIN_SECONDS: Final = 0.01
LOCK_WAIT: Final = "10s"
SHARED_LOCK_WAIT: Final = "25ms"
"""how long a connection that many share waits for anybody's lock: ordinary transactions are over by then"""
SILENCE: Final = "10s"
"""a process that stops in the middle of a transaction keeps its locks no longer"""
PAUSE_SECONDS_FIRST: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
"""Holders of leases ask again every half second, and must be able to renew before others take their jobs back."""

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
BEGUN: Final = "(extract(epoch FROM transaction_timestamp()) * 1000000)::bigint"
"""the time throughout a transaction of ours: whichever statement asks is told the same"""
# Every statement of ours finds few rows by an index, whatever the statistics say of a table that grows and shrinks.
_PLANS: Final = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
_OF_PARENTS: Final[list[WatchedConnection]] = []
"""connections that another process uses: kept here, where nobody closes them"""
_log = logging.getLogger("ropewalk.postgres")


class Connector:
    """How connections are made: which settings were found, and since when none could be made."""

    def __init__(
        self, runtime: Runtime, address: Address, *, allow_weaker_durability: bool, migrate: bool = True
    ) -> None:
        self.address = address
        self.durability = DurabilityWatch(runtime, address.shown, allowed=allow_weaker_durability)
        self._runtime = runtime
        self._allow_weaker_durability = allow_weaker_durability
        self._migrate = migrate
        self._failed: StoreUnavailable | None = None
        self._closed_until = 0.0
        self._pause = GrowingPause(PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX)

    def open(
        self, *, by: object = None, only_looks: bool = False, silence_seconds_max: float = SILENCE_SECONDS_MAX
    ) -> WatchedConnection:
        """While the server does not answer, most are told so at once: one in a while tries.

        A connection that acknowledges nothing (`only_looks`) is made whatever the server keeps. What the others find
        is remembered for whom they are made (`by`), if they stay.
        """
        if self._failed is not None and self._runtime.monotonic() < self._closed_until:
            raise self._failed
        try:
            opened = open_store(
                self.address,
                allow_weaker_durability=self._allow_weaker_durability or only_looks,
                migrate=self._migrate,
            )
        except TooWeak as error:
            self.durability.refused(error.settings)
            raise
        except psycopg.Error as error:
            told = translated(error, self.address.shown)
            if isinstance(told, StoreUnavailable):
                self._wait(told)
            raise told from error
        self._failed = None
        self._pause.start_over()
        if by is not None and not only_looks:
            self.durability.opened(by, opened.settings)
        opened.db.silence_seconds_max = silence_seconds_max
        return opened.db

    def _wait(self, failed: StoreUnavailable) -> None:
        self._failed = failed
        self._closed_until = self._runtime.monotonic() + self._pause.after()


class Session(ConnectionThread):
    """One thread, one connection. `clock="runtime"` lets a fake clock decide instead of the server's.

    The loop may speak on that connection itself while the thread does not (`at_once`).
    """

    _begin_as: bytes = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    _sql: Statements = SQL
    _careful_sql: Statements = CAREFUL
    _plans: tuple[str, ...] = _PLANS
    _silence_seconds_max: float = SILENCE_SECONDS_MAX

    def __init__(
        self, runtime: Runtime, connector: Connector, name: str, *, clock: Clock, lock_wait: str = LOCK_WAIT
    ) -> None:
        self._connector = connector
        self._lock_wait = lock_wait
        self._clock = clock
        self._lanes = LaneBook()
        self._db: WatchedConnection | None = None
        self._left_behind: WatchedConnection | None = None
        self._post: Pipeline | None = None
        self._begin: Sequence[Statement] = ()
        self._ours = False
        """no pooler is in between"""
        self._on_loop = False
        """a loop is in the middle of a trip"""
        super().__init__(runtime, f"ropewalk-postgres-{name}")

    def names_of(self, _: Sequence[int]) -> Mapping[int, LaneName]:
        """Of the lanes this session has met so far."""
        return self._lanes.known_names

    async def at_once(self, said: Sequence[Statement]) -> list[Reply] | None:
        """A whole transaction in one trip, without the thread. None, and nothing has happened, where that cannot be:
        there is no connection yet, somebody uses it, or one of the statements failed. Then `ask`.

        For transactions of one trip alone: in one of several, a handler that blocks the loop would hold all its locks.
        """
        if self._clock != "server" or not self._busy.acquire(blocking=False):
            return None
        try:
            self._on_loop = True
            return await self._trip_on_loop(said)
        finally:
            self._on_loop = False
            self._busy.release()

    async def _trip_on_loop(self, said: Sequence[Statement]) -> list[Reply] | None:
        db, post = self._db, self._post
        if db is None or post is None or not self._ours or not may_watch(db.pgconn.socket):
            return None
        if has_come(db.pgconn.socket):  # nobody asked for anything: the server has ended it
            self._disconnect()
            return None
        try:
            _, *answers, committed = await post.together_on_loop([self._begin[0], *said, COMMIT])
        except psycopg.Error as error:
            if breaks_connection(error):
                self._disconnect()
                raise translated(error, self._connector.address.shown, committing=True) from error
            await self._roll_back_on_loop(post)
            return None
        except BaseException:
            self._disconnect()
            raise
        assert committed.status == b"COMMIT", f"not committed, though nothing failed: {committed.status!r}"
        return answers

    async def _roll_back_on_loop(self, post: Pipeline) -> None:
        try:
            await post.together_on_loop([ROLLBACK])
        except BaseException:
            self._disconnect()
            raise

    def _met_damage(self, error: Exception) -> bool:
        return met_damage(error)

    def before_fork(self) -> None:
        """What a loop is in the middle of stays with the parent: it could not be waited for."""
        self._left_behind = self._db if self._on_loop else None
        if self._left_behind is None:
            super().before_fork()

    def after_fork_in_parent(self) -> None:
        if self._left_behind is None:
            super().after_fork_in_parent()
        self._left_behind = None

    def after_fork_in_child(self) -> None:
        self._db = self._post = None
        self._on_loop = False
        if self._left_behind is not None:
            _OF_PARENTS.append(self._left_behind)
        super().after_fork_in_child()

    async def _serve(self, requests: list[Request[Any]]) -> None:
        for request in requests:
            for number in range(1, TRIES_MAX + 1):
                with self._busy:
                    answered = self._answered(request, last=number == TRIES_MAX)
                if answered:
                    break
                await self._let_pass(number)
            deliver([request])
            with self._busy:
                self._clear_up()

    def _clear_up(self) -> None:
        """What nobody has to wait for."""
        db, durability = self._db, self._connector.durability
        if db is not None and durability.due(self):
            try:
                durability.found(self, settings_of(db))
            except psycopg.Error as error:
                self._undo(error)

    async def stop(self) -> None:
        await super().stop()
        self._connector.durability.left(self)

    async def _let_pass(self, number: int) -> None:
        """Not again at once: whoever was in the way waits for what was just let go, and should get it first."""
        if self._clock == "server":  # a fake clock would have to be advanced by somebody
            await self._runtime.sleep(self._runtime.random() * number * AGAIN_SECONDS)

    def _answered(self, request: Request[Any], *, last: bool) -> bool:
        """False when others were in the way, and it is to be tried again."""
        try:
            request.succeed(self._transact(request.work))
        except Exception as error:
            self._lanes.forget()
            if may_run_again(error) and not last:
                return False
            request.fail(error if self._is_held_up(error) else translated(error, self._connector.address.shown))
        return True

    def _is_held_up(self, error: Exception) -> bool:
        """Whether a lock did not come in the short time that this connection waits. With more patience it may."""
        return isinstance(error, HeldUp) and self._lock_wait != LOCK_WAIT

    def _transact(self, work: Callable[[Tx], T]) -> T:
        """A connection that broke while nobody used it is replaced: nothing has happened on it yet."""
        if self._post is not None:
            trips = self._trips(self._post)
            try:
                return self._run(work, trips)
            except psycopg.Error as error:
                if trips.answered or not breaks_connection(error) or isinstance(error, Silence):
                    raise
        return self._run(work, self._trips(self._connected()))

    def _connected(self) -> Pipeline:
        db = self._db = self._connector.open(
            by=self, only_looks=self._only_looks, silence_seconds_max=self._silence_seconds_max
        )
        ours = self._ours = db.prepare_threshold is not None
        self._begin = (Statement(self._begin_as), Statement(self._settled_in(db) if ours else self._settling_in()))
        self._post = Pipeline(db, prepared_max=PREPARED_MAX if ours else None)
        return self._post

    def _settled_in(self, db: WatchedConnection) -> bytes:
        """Where the session is ours alone, it keeps its settings."""
        db.execute(beginning(self._connector.address.schema, self._plans, lock_wait=self._lock_wait, for_good=True))
        return f"SELECT {BEGUN}".encode()

    def _settling_in(self) -> bytes:
        return beginning(self._connector.address.schema, self._plans, BEGUN, lock_wait=self._lock_wait)

    def _trips(self, post: Pipeline) -> PipelinedTransaction:
        return PipelinedTransaction(post, self._begin, self._runtime.now if self._clock == "runtime" else None)

    def _run(self, work: Callable[[Tx], T], trips: PipelinedTransaction) -> T:
        try:
            value = work(Tx(trips, self._lanes, self._sql, self._careful_sql))
            self._commit(trips)
        except BaseException as error:
            self._undo(error, tried=trips.tried)
            if trips.committing and isinstance(error, psycopg.Error) and breaks_connection(error):
                raise translated(error, self._connector.address.shown, committing=True) from error
            raise
        return value

    def _commit(self, trips: PipelinedTransaction) -> None:
        """Together with what was put off until now: where that fails, the commit is not even tried."""
        trips.commit()

    def _undo(self, error: BaseException, *, tried: bool = True) -> None:
        """Roll back; where even that is impossible, or the line broke, there is nothing to be saved."""
        db = self._db
        if db is None:
            return
        try:
            if not breaks_connection(error) and not db.closed:
                if tried:
                    db.execute(b"ROLLBACK")
                return
        except psycopg.Error:
            _log.debug("could not roll back after %s", error)
        self._disconnect()

    def _disconnect(self) -> None:
        db, self._db, self._post = self._db, None, None
        self._lanes.forget()
        if db is not None:
            db.close()


class ReadingSession(Session):
    """Everything one request reads is of one instant."""

    _begin_as = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _sql = READING
    _careful_sql = CAREFUL_READING
    _only_looks = True
    _plans = ("jit",)
    _silence_seconds_max = 25.0  # to count a great many takes its time
    _unended: PipelinedTransaction | None = None

    def _commit(self, trips: PipelinedTransaction) -> None:
        """Nothing depends on it: whoever asked is told first."""
        self._unended = trips

    def _clear_up(self) -> None:
        trips, self._unended = self._unended, None
        if trips is not None and self._post is not None:
            try:
                trips.commit()
            except psycopg.Error as error:
                self._undo(error)


def beginning(
    schema: str,
    off: tuple[str, ...] = _PLANS,
    time: str = NOW,
    *,
    lock_wait: str = LOCK_WAIT,
    for_good: bool = False,
) -> bytes:
    """The time, and settings that end with the transaction: no session is ours behind a pooler."""
    settings = settings_in(schema, off) | {
        "idle_in_transaction_session_timeout": SILENCE,
        "lock_timeout": lock_wait,
    }
    until = "false" if for_good else "true"
    chosen = ", ".join(f"set_config('{name}', '{value}', {until})" for name, value in settings.items())
    return f"SELECT {time}, {chosen}".encode()


def settings_in(schema: str, off: tuple[str, ...] = _PLANS) -> dict[str, str]:
    """What our statements need around them."""
    settings = {"search_path": f"{schema}, pg_temp", "lock_timeout": LOCK_WAIT, "array_nulls": "on"}
    settings |= dict.fromkeys(off, "off")
    if off == _PLANS:  # which leave no choice that would depend on the values
        settings["plan_cache_mode"] = "force_generic_plan"
    return settings
