"""Enqueues jobs in a user's transaction: which connections it accepts, and how it leaves them as they were.

A verb is Python code that waits for each statement. If the connection belongs to asyncio, the verb runs in a thread,
and each of its statements on the event loop of the connection. If the call is cancelled, the current statement is
cancelled, the verb ends with that error, and what it began is undone before the cancellation goes on.

A verb in a user's transaction first checks the connection and then works behind a savepoint. The statements of ropewalk
need a search path and plans of their own. Such settings usually end with a transaction, but the user's transaction goes
on, so they are set back, by the verb or by the savepoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import msgspec
import psycopg
from msgspec import Struct

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.connections import NOW, Clock, settings_in
from ropewalk.backends.postgres.drivers import asyncpg, psycopg3
from ropewalk.backends.postgres.drivers.driver import (
    Answer,
    AsyncDriverConnection,
    DriverConnection,
    Given,
    PlainDriverConnection,
)
from ropewalk.backends.postgres.faults import may_run_again, translated
from ropewalk.backends.postgres.notifier import notifications
from ropewalk.backends.postgres.statements import CAREFUL, SQL
from ropewalk.backends.postgres.tx import Tx
from ropewalk.backends.postgres.wire.transaction import UserTransactionWire
from ropewalk.backends.sql import quotas, sqlalchemy_sessions
from ropewalk.backends.sql.lanes import LaneBook, QuotaBook
from ropewalk.backends.sql.user_transactions import (
    ConnectionLocks,
    queues_served,
    run_to_completion,
    submit_all,
    unknown,
)
from ropewalk.domain.time import Instant
from ropewalk.errors import InvalidInput, WeakDurability
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Awaited, Blocking, Join, UserConnection

T = TypeVar("T")


async def run_on_loop(runtime: Runtime, connection: AsyncDriverConnection, work: Callable[[DriverConnection], T]) -> T:
    """Runs `work` in a thread. Returns or raises only when the thread is done with the connection."""
    bridge = Bridge(connection)
    outcome: Future[T] = Future()
    runtime.spawn(_in_thread(runtime, outcome, lambda: work(bridge)), name="ropewalk-joining")
    return await run_to_completion(asyncio.wrap_future(outcome), when_cancelled=bridge.interrupt)


class Bridge(DriverConnection):
    """A connection for the thread, which runs its statements on the event loop on which the bridge was made."""

    def __init__(self, connection: AsyncDriverConnection) -> None:
        self._driver_connection = connection
        self._loop = asyncio.get_running_loop()
        self._interrupted = False
        self._statement: asyncio.Task[Any] | None = None

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        return asyncio.run_coroutine_threadsafe(self._interruptible(sql, values, binary), self._loop).result()

    def execute_uninterrupted(self, sql: str) -> None:
        asyncio.run_coroutine_threadsafe(self._driver_connection.execute(sql), self._loop).result()

    def interrupt(self) -> None:
        """Cancels the current statement and refuses further ones. This is called on the event loop."""
        self._interrupted = True
        if self._statement is not None:
            self._statement.cancel()

    async def _interruptible(self, sql: str, values: Given, binary: bool) -> Answer:  # noqa: FBT001  passed on
        if self._interrupted:
            raise asyncio.CancelledError
        self._statement = asyncio.current_task()
        try:
            return await self._driver_connection.execute(sql, values, binary=binary)
        finally:
            self._statement = None


async def _in_thread(runtime: Runtime, outcome: Future[T], work: Callable[[], T]) -> None:
    """Runs work in a thread and puts its result into `outcome`. The result of the task itself would not do: when an
    event loop ends, all of its tasks are cancelled, but the thread goes on."""

    def settle() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # whatever it is, somebody waits for it
            outcome.set_exception(error)

    try:
        await runtime.in_thread(settle)
    except Exception as error:  # no thread could be had
        outcome.set_exception(error)


TRIES_MAX: Final = 3
"""This is less than for a transaction of ropewalk's own, because the locks that the user's transaction already has are
not released between the tries."""

_FRESH: Final = ("read committed", "read uncommitted")
"""At these isolation levels, a statement sees what was committed before it began."""
_KEPT: Final = ("on", "remote_apply")
_CHECKED: Final = ("transaction_isolation", "transaction_read_only", "client_encoding", "synchronous_commit")
_settings = msgspec.json.Decoder(dict[str, str])


class TableIdentity(Struct, frozen=True):
    """Which table of which database of which server it is, because elsewhere the same names may mean others."""

    server: int
    database: int
    table: int | None


class StoreIdentity(Struct, frozen=True, kw_only=True):
    """The store into which jobs are enqueued in users' transactions."""

    address: Address
    identity: TableIdentity
    runtime: Runtime
    clock: Clock
    allow_weaker_durability: bool
    quotas: QuotaBook
    """The quotas as the last user's transaction saw them."""


def in_user_transaction(connection: DriverConnection, store: StoreIdentity, work: Callable[[Tx], T]) -> T:
    """Runs `work` in the user's transaction: completely or not at all, and the transaction goes on as before."""
    for left in reversed(range(TRIES_MAX)):
        try:
            return _run_once(connection, store, work)
        except Exception as error:
            if left and may_run_again(error):
                continue
            translation = translated(error, store.address.shown)
            if translation is error:
                raise
            raise translation from error
    raise AssertionError("the last try answers or raises")


def identity_query(schema: str) -> str:
    """Returns the statement that reads the identity of a schema."""
    return (
        "SELECT (SELECT system_identifier FROM pg_control_system()), "  # noqa: S608  a name that was checked
        "(SELECT oid::bigint FROM pg_database WHERE datname = current_database()), "
        f"to_regclass('{schema}.migration')::oid::bigint"
    )


def _run_once(connection: DriverConnection, store: StoreIdentity, work: Callable[[Tx], T]) -> T:
    connection.execute_uninterrupted("SAVEPOINT ropewalk")
    try:
        now, found = _check(connection, store)
        ours = settings_in(store.address.schema)
        if found["lock_timeout"] != "0":
            del ours["lock_timeout"]  # the user's own patience
        _apply(connection, ours)
        value = work(
            Tx(UserTransactionWire(PlainDriverConnection(connection), now), LaneBook(store.quotas), SQL, CAREFUL)
        )
        _apply(connection, {name: found[name] for name in ours})
        connection.execute_uninterrupted("RELEASE ropewalk")
    except BaseException:
        _roll_back(connection)
        raise
    return value


def _check(connection: DriverConnection, store: StoreIdentity) -> tuple[Instant, dict[str, str]]:
    """Returns the time, and the settings of the user's session. Raises if jobs cannot be enqueued in this
    transaction."""
    names = "', '".join((*_CHECKED, *settings_in(store.address.schema)))
    settings = f"SELECT json_object_agg(name, current_setting(name)) FROM unnest(ARRAY['{names}']) AS name"  # noqa: S608  ours
    answer = connection.execute(f"{identity_query(store.address.schema)}, {NOW}, ({settings})", binary=True)
    server, database, table, now, given = answer.rows[0]
    _check_place(TableIdentity(server, database, table), store)
    found = _settings.decode(given)
    _check_settings(found)
    _check_durability(found["synchronous_commit"], store)
    return store.runtime.now() if store.clock == "runtime" else now, found


def _check_place(identity: TableIdentity, store: StoreIdentity) -> None:
    if identity != store.identity:
        place = f"schema {store.address.schema} of {store.address.shown}"
        raise InvalidInput(f"connection= leads to another database than {place}: jobs go there", field="connection")


def _check_settings(found: dict[str, str]) -> None:
    isolation, read_only, encoding = (found[name] for name in _CHECKED[:3])
    wrong = None
    if isolation not in _FRESH:
        # What was committed since such a transaction began it does not see: a key in use, a job that has ended.
        wrong = f"runs at isolation level {isolation.upper()}: use READ COMMITTED for a transaction that enqueues"
    elif read_only == "on":
        wrong = "is in a transaction that may only read: begin one that may write"
    elif encoding != "UTF8":
        wrong = f"has client_encoding={encoding}: set it to UTF8"
    if wrong is not None:
        raise InvalidInput(f"connection= {wrong}", field="connection")


def _check_durability(synchronous_commit: str, store: StoreIdentity) -> None:
    if synchronous_commit not in _KEPT and not store.allow_weaker_durability:
        raise WeakDurability(
            f"connection= could lose acknowledged jobs: synchronous_commit is {synchronous_commit!r}. Say "
            "SET LOCAL synchronous_commit = on in this transaction, or pass allow_weaker_durability=True to the app"
        )


def _apply(connection: DriverConnection, settings: dict[str, str]) -> None:
    chosen = ", ".join("set_config(%s, %s, true)" for _ in settings)
    connection.execute(f"SELECT {chosen}", [word for pair in settings.items() for word in pair])


def _roll_back(connection: DriverConnection) -> None:
    """Undoes everything since the savepoint, including the settings. If the connection broke, there is nothing to undo,
    and another error reports it."""
    try:
        connection.execute_uninterrupted("ROLLBACK TO ropewalk; RELEASE ropewalk")
    except psycopg.Error:
        return


WANTED: Final = f"a psycopg (3) or asyncpg connection, or of SQLAlchemy on one of these {sqlalchemy_sessions.WANTED}"


class PostgresJoining:
    """Finds out what kind of connection a user passed, and enqueues jobs in its transaction."""

    def __init__(self) -> None:
        self._watches = sqlalchemy_sessions.Watches()
        self._locks = ConnectionLocks()

    def join(self, connection: UserConnection, store: StoreIdentity) -> Join:
        if psycopg3.is_blocking(connection) or sqlalchemy_sessions.is_blocking(connection):
            return Blocking(
                lambda submissions, after: self._enqueue_blocking(connection, _Work(store, submissions), after)
            )
        if (
            psycopg3.is_awaited(connection)
            or asyncpg.is_awaited(connection)
            or sqlalchemy_sessions.is_awaited(connection)
        ):
            return Awaited(
                lambda submissions, after: self._enqueue_on_loop(connection, _Work(store, submissions), after)
            )
        raise unknown(connection, WANTED)

    def _enqueue_blocking(self, connection: object, work: _Work, after_commit: AfterCommit) -> Answers:
        with self._locks.blocking(connection):
            begun = sqlalchemy_sessions.begun(connection)
            answers = work.run(_driver_connection(begun.driver), notify=begun.session is None)
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers

    async def _enqueue_on_loop(self, connection: object, work: _Work, after_commit: AfterCommit) -> Answers:
        async with self._locks.awaited(connection):
            begun = await sqlalchemy_sessions.begun_async(connection)
            connection, notify = _async_driver_connection(begun.driver), begun.session is None
            runtime = work.store.runtime
            answers = await run_on_loop(runtime, connection, lambda bridge: work.run(bridge, notify=notify))
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers


class _Work(Struct, frozen=True):
    """What to do in the user's transaction. With `notify`, nobody reports its commit, so the transaction itself
    notifies the workers."""

    store: StoreIdentity
    submissions: Sequence[Submission]

    def run(self, connection: DriverConnection, *, notify: bool) -> Answers:
        return in_user_transaction(connection, self.store, lambda tx: self._write(tx, notify=notify))

    def _write(self, tx: Tx, *, notify: bool) -> Answers:
        answers = submit_all(tx, self.submissions, quotas.admission_in_user_transaction)
        address = self.store.address
        if notify and address.notify:
            # One payload a queue, the same for every job: of equal ones a transaction sends one, when it commits.
            for channel, payload in notifications(address.schema, queues_served(self.submissions, answers)):
                tx.row("SELECT pg_notify(%s, %s)", (channel, payload))
        return answers


def _driver_connection(driver: object) -> DriverConnection:
    if psycopg3.is_blocking(driver):
        return psycopg3.PsycopgConnection(driver)
    raise unknown(driver, WANTED)


def _async_driver_connection(driver: object) -> AsyncDriverConnection:
    if psycopg3.is_awaited(driver):
        return psycopg3.AsyncPsycopgConnection(driver)
    if asyncpg.is_awaited(driver):
        return asyncpg.AsyncpgConnection(driver)
    raise unknown(driver, WANTED)
