"""The connections of a PostgreSQL store: each belongs to a thread, and every request is one transaction on it, which
runs again if another transaction was in its way.

A request that waits for a lock delays only requests of the same connection, so that renewals never wait behind a long
settlement. A connection that broke is not used again. If it broke before the commit, nothing has happened; if it broke
during the commit, nobody knows.

While the thread does not use its connection, an event loop may, for a transaction of one round trip
(`Session.transact_on_loop`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import psycopg

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.durability import DurabilityWatch, settings_of
from ropewalk.backends.postgres.faults import LockTimeout, breaks_connection, may_run_again, met_damage, translated
from ropewalk.backends.postgres.opening import PREPARED_MAX, TooWeakSettings, open_store
from ropewalk.backends.postgres.statements import CAREFUL, CAREFUL_READING, READING, SQL
from ropewalk.backends.postgres.tx import Tx
from ropewalk.backends.postgres.wire.connection import (
    SILENCE_SECONDS_MAX,
    Silence,
    WatchedConnection,
    can_watch,
    has_input,
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
"""A transaction runs again after a random time up to this, multiplied by the number of tries."""
LOCK_WAIT: Final = "10s"
"""A connection whose callers have to wait for a lock waits this long."""
SHARED_LOCK_WAIT: Final = "25ms"
"""A connection that many callers share waits this long for a lock: ordinary transactions are over by then."""
IDLE_IN_TRANSACTION_MAX: Final = "10s"
"""The server ends the transaction of a process that does nothing in it for this long, so that its locks are
released."""
PAUSE_SECONDS_FIRST: Final = 0.1
PAUSE_SECONDS_MAX: Final = 1.0
"""While the server does not answer, a connection is tried at least this often. Holders of leases ask every half second,
and must be able to renew before others take their jobs back."""

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
BEGUN: Final = "(extract(epoch FROM transaction_timestamp()) * 1000000)::bigint"
"""The time at which the transaction began, which is the same for all of its statements."""
# Every statement of ropewalk finds few rows by an index, whatever the statistics say: tables grow and shrink quickly.
_PLANS: Final = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
_CONNECTIONS_OF_PARENTS: Final[list[WatchedConnection]] = []
"""After a fork, connections that the parent uses. They are kept here so that the child does not close them."""
_log = logging.getLogger("ropewalk.postgres")


class Connector:
    """Makes the connections of one store. It remembers the settings of the server and, if the server does not answer,
    since when."""

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
        self, *, by: object = None, only_reads: bool = False, silence_seconds_max: float = SILENCE_SECONDS_MAX
    ) -> WatchedConnection:
        """Opens a connection. While the server does not answer, most calls fail at once, and only one now and then
        tries.

        A connection that only reads is made whatever the durability of the server, because it acknowledges nothing.
        `by` is the session that will use the connection, if it lasts; the settings that it found are remembered.
        """
        if self._failed is not None and self._runtime.monotonic() < self._closed_until:
            raise self._failed
        try:
            opened = open_store(
                self.address,
                allow_weaker_durability=self._allow_weaker_durability or only_reads,
                migrate=self._migrate,
            )
        except TooWeakSettings as error:
            self.durability.refused(error.settings)
            raise
        except psycopg.Error as error:
            translation = translated(error, self.address.shown)
            if isinstance(translation, StoreUnavailable):
                self._wait(translation)
            raise translation from error
        self._failed = None
        self._pause.start_over()
        if by is not None and not only_reads:
            self.durability.opened(by, opened.settings)
        opened.db.silence_seconds_max = silence_seconds_max
        return opened.db

    def _wait(self, failed: StoreUnavailable) -> None:
        """Records that the server does not answer, so that the next calls fail at once for a while."""
        self._failed = failed
        self._closed_until = self._runtime.monotonic() + self._pause.after()


class Session(ConnectionThread):
    """A thread with one connection. With `clock="runtime"`, a fake clock decides instead of the server's clock."""

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
        self._left_to_parent: WatchedConnection | None = None
        """The connection that an event loop was using at the last fork."""
        self._pipeline: Pipeline | None = None
        self._begin: Sequence[Statement] = ()
        self._unpooled = False
        """Whether the connection leads straight to the server and not to a pooler."""
        self._on_loop = False
        """Whether an event loop is in the middle of a round trip on this connection."""
        super().__init__(runtime, f"ropewalk-postgres-{name}")

    def names_of(self, _: Sequence[int]) -> Mapping[int, LaneName]:
        """Returns the names of lanes that this session knows so far."""
        return self._lanes.known_names

    async def transact_on_loop(self, statements: Sequence[Statement]) -> list[Reply] | None:
        """Runs a whole transaction in one round trip, for which the event loop waits itself instead of the thread.
        Returns None, and has changed nothing, if that is impossible: there is no connection yet, it is in use, or one
        of the statements failed. Then the caller uses `ask`.

        This is only for transactions of one round trip. In a longer one, a handler that blocks the event loop would
        hold all locks of the transaction.
        """
        if self._clock != "server" or not self._busy.acquire(blocking=False):
            return None
        try:
            self._on_loop = True
            return await self._round_trip_on_loop(statements)
        finally:
            self._on_loop = False
            self._busy.release()

    async def _round_trip_on_loop(self, statements: Sequence[Statement]) -> list[Reply] | None:
        db, pipeline = self._db, self._pipeline
        if db is None or pipeline is None or not self._unpooled or not can_watch(db.pgconn.socket):
            return None
        if has_input(db.pgconn.socket):  # Nothing was asked, so the server has ended the connection.
            self._disconnect()
            return None
        try:
            _, *answers, committed = await pipeline.run_on_loop([self._begin[0], *statements, COMMIT])
        except psycopg.Error as error:
            if breaks_connection(error):
                self._disconnect()
                raise translated(error, self._connector.address.shown, committing=True) from error
            await self._roll_back_on_loop(pipeline)
            return None
        except BaseException:
            self._disconnect()
            raise
        assert committed.status == b"COMMIT", f"not committed, though nothing failed: {committed.status!r}"
        return answers

    async def _roll_back_on_loop(self, pipeline: Pipeline) -> None:
        try:
            await pipeline.run_on_loop([ROLLBACK])
        except BaseException:
            self._disconnect()
            raise

    def _met_damage(self, error: Exception) -> bool:
        return met_damage(error)

    def before_fork(self) -> None:
        """Closes the connection, unless an event loop is in the middle of a round trip, for which the fork cannot wait.
        Then the connection stays with the parent."""
        self._left_to_parent = self._db if self._on_loop else None
        if self._left_to_parent is None:
            super().before_fork()

    def after_fork_in_parent(self) -> None:
        if self._left_to_parent is None:
            super().after_fork_in_parent()
        self._left_to_parent = None

    def after_fork_in_child(self) -> None:
        self._db = self._pipeline = None
        self._on_loop = False
        if self._left_to_parent is not None:
            _CONNECTIONS_OF_PARENTS.append(self._left_to_parent)
        super().after_fork_in_child()

    async def _serve(self, requests: list[Request[Any]]) -> None:
        for request in requests:
            for number in range(1, TRIES_MAX + 1):
                with self._busy:
                    answered = self._answer(request, last=number == TRIES_MAX)
                if answered:
                    break
                await self._wait_before_retry(number)
            deliver([request])
            with self._busy:
                self._after_answer()

    def _after_answer(self) -> None:
        """Does what no caller has to wait for."""
        db, durability = self._db, self._connector.durability
        if db is not None and durability.due(self):
            try:
                durability.found(self, settings_of(db))
            except psycopg.Error as error:
                self._roll_back(error)

    async def stop(self) -> None:
        await super().stop()
        self._connector.durability.closed(self)

    async def _wait_before_retry(self, number: int) -> None:
        """Waits a moment, because the other transaction waits for what this one has just released, and should get it
        first."""
        if self._clock == "server":  # With a fake clock, somebody would have to advance it.
            await self._runtime.sleep(self._runtime.random() * number * AGAIN_SECONDS)

    def _answer(self, request: Request[Any], *, last: bool) -> bool:
        """Runs a request and answers it. Returns False if another transaction was in its way, so that it has to run
        again."""
        try:
            request.succeed(self._transact(request.work))
        except Exception as error:
            self._lanes.forget()
            if may_run_again(error) and not last:
                return False
            request.fail(error if self._is_held_up(error) else translated(error, self._connector.address.shown))
        return True

    def _is_held_up(self, error: Exception) -> bool:
        """Whether a lock was not available within the short time that this connection waits. A connection that waits
        longer may get it."""
        return isinstance(error, LockTimeout) and self._lock_wait != LOCK_WAIT

    def _transact(self, work: Callable[[Tx], T]) -> T:
        """Runs work in a transaction. If the connection broke while nobody used it, nothing has happened on it yet, and
        a new one takes its place."""
        if self._pipeline is not None:
            transaction = self._transaction(self._pipeline)
            try:
                return self._run(work, transaction)
            except psycopg.Error as error:
                if transaction.answered or not breaks_connection(error) or isinstance(error, Silence):
                    raise
        return self._run(work, self._transaction(self._connected()))

    def _connected(self) -> Pipeline:
        db = self._db = self._connector.open(
            by=self, only_reads=self._only_reads, silence_seconds_max=self._silence_seconds_max
        )
        unpooled = self._unpooled = db.prepare_threshold is not None
        self._begin = (
            Statement(self._begin_as),
            Statement(self._apply_settings(db) if unpooled else self._settings_of_each()),
        )
        self._pipeline = Pipeline(db, prepared_max=PREPARED_MAX if unpooled else None)
        return self._pipeline

    def _apply_settings(self, db: WatchedConnection) -> bytes:
        """Makes the settings for good, because nobody else uses the session. Returns the statement that reads the
        time."""
        db.execute(beginning(self._connector.address.schema, self._plans, lock_wait=self._lock_wait, for_good=True))
        return f"SELECT {BEGUN}".encode()

    def _settings_of_each(self) -> bytes:
        """Returns the statement that makes the settings for one transaction and reads the time."""
        return beginning(self._connector.address.schema, self._plans, BEGUN, lock_wait=self._lock_wait)

    def _transaction(self, pipeline: Pipeline) -> PipelinedTransaction:
        return PipelinedTransaction(pipeline, self._begin, self._runtime.now if self._clock == "runtime" else None)

    def _run(self, work: Callable[[Tx], T], transaction: PipelinedTransaction) -> T:
        try:
            value = work(Tx(transaction, self._lanes, self._sql, self._careful_sql))
            self._commit(transaction)
        except BaseException as error:
            self._roll_back(error, tried=transaction.tried)
            if transaction.committing and isinstance(error, psycopg.Error) and breaks_connection(error):
                raise translated(error, self._connector.address.shown, committing=True) from error
            raise
        return value

    def _commit(self, transaction: PipelinedTransaction) -> None:
        """Commits, together with the statements that were postponed. If one of these fails, the commit is not tried."""
        transaction.commit()

    def _roll_back(self, error: BaseException, *, tried: bool = True) -> None:
        """Rolls back. If that is impossible, or the connection broke, the connection is closed. `tried` says whether
        anything was sent."""
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
        db, self._db, self._pipeline = self._db, None, None
        self._lanes.forget()
        if db is not None:
            db.close()


class ReadingSession(Session):
    """A session whose transactions only read, on one view of the database."""

    _begin_as = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _sql = READING
    _careful_sql = CAREFUL_READING
    _only_reads = True
    _plans = ("jit",)
    _silence_seconds_max = 25.0
    """Counting very many rows takes time."""
    _unended: PipelinedTransaction | None = None

    def _commit(self, transaction: PipelinedTransaction) -> None:
        """Ends the transaction only after its caller has the answer, because nothing depends on its end."""
        self._unended = transaction

    def _after_answer(self) -> None:
        transaction, self._unended = self._unended, None
        if transaction is not None and self._pipeline is not None:
            try:
                transaction.commit()
            except psycopg.Error as error:
                self._roll_back(error)


def beginning(
    schema: str,
    off: tuple[str, ...] = _PLANS,
    time: str = NOW,
    *,
    lock_wait: str = LOCK_WAIT,
    for_good: bool = False,
) -> bytes:
    """Returns the statement that reads the time and makes the settings. They end with the transaction, because behind a
    pooler the next one may have another session; with `for_good`, they last."""
    settings = settings_in(schema, off) | {
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MAX,
        "lock_timeout": lock_wait,
    }
    until = "false" if for_good else "true"
    chosen = ", ".join(f"set_config('{name}', '{value}', {until})" for name, value in settings.items())
    return f"SELECT {time}, {chosen}".encode()


def settings_in(schema: str, off: tuple[str, ...] = _PLANS) -> dict[str, str]:
    """Returns the settings that the statements of ropewalk need."""
    settings = {"search_path": f"{schema}, pg_temp", "lock_timeout": LOCK_WAIT, "array_nulls": "on"}
    settings |= dict.fromkeys(off, "off")
    if off == _PLANS:  # These plans do not depend on the values.
        settings["plan_cache_mode"] = "force_generic_plan"
    return settings
