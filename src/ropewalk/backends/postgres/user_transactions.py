"""Which connections a job can be enqueued through, and how each is spoken to.

Verbs are plain Python that waits; a connection of asyncio is used on its own loop only.

So the verb runs in a thread, and every statement of it on the loop. Where the call is cancelled, the statement under
way is cancelled, the verb ends with that, and what it began is put back before the cancellation goes on.

Inside a user's transaction: looked at first, entered behind a savepoint, left as it was found.

Our statements need our search path, and plans that hold for tables that grow and shrink. Such settings end with a
transaction, but this one goes on after us: they are put back, by us or by the savepoint.
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
from ropewalk.backends.postgres.drivers.driver import Answer, AsyncSpeaker, Given, Speaker, Voice
from ropewalk.backends.postgres.faults import may_run_again, translated
from ropewalk.backends.postgres.notifier import letters
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


async def on_this_loop(runtime: Runtime, speaker: AsyncSpeaker, work: Callable[[Speaker], T]) -> T:
    """Run `work` in a thread. Returns, or raises, only when that thread is done with the connection."""
    bridge = Bridge(speaker)
    outcome: Future[T] = Future()
    runtime.spawn(_in_thread(runtime, outcome, lambda: work(bridge)), name="ropewalk-joining")
    return await run_to_completion(asyncio.wrap_future(outcome), when_cancelled=bridge.interrupt)


class Bridge(Speaker):
    """For the thread: speaks on the loop on which it was made."""

    def __init__(self, speaker: AsyncSpeaker) -> None:
        self._speaker = speaker
        self._loop = asyncio.get_running_loop()
        self._interrupted = False
        self._statement: asyncio.Task[Any] | None = None

    def execute(self, sql: str, values: Given = None, *, binary: bool = False) -> Answer:
        return asyncio.run_coroutine_threadsafe(self._interruptible(sql, values, binary), self._loop).result()

    def surely(self, sql: str) -> None:
        asyncio.run_coroutine_threadsafe(self._speaker.execute(sql), self._loop).result()

    def interrupt(self) -> None:
        """On the loop."""
        self._interrupted = True
        if self._statement is not None:
            self._statement.cancel()

    async def _interruptible(self, sql: str, values: Given, binary: bool) -> Answer:  # noqa: FBT001  passed on
        if self._interrupted:
            raise asyncio.CancelledError
        self._statement = asyncio.current_task()
        try:
            return await self._speaker.execute(sql, values, binary=binary)
        finally:
            self._statement = None


async def _in_thread(runtime: Runtime, outcome: Future[T], work: Callable[[], T]) -> None:
    """Not the task's own result: at the end of a loop every task is cancelled, and the thread goes on."""

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
"""fewer than in transactions of our own: what the user locked before is not given back in between"""

_FRESH: Final = ("read committed", "read uncommitted")
"""levels at which a statement sees what was committed before it began"""
_KEPT: Final = ("on", "remote_apply")
_LOOKED_AT: Final = ("transaction_isolation", "transaction_read_only", "client_encoding", "synchronous_commit")
_settings = msgspec.json.Decoder(dict[str, str])


class Identity(Struct, frozen=True):
    """Which table of which database of which server: the same names may stand for others elsewhere."""

    server: int
    database: int
    table: int | None


class StoreIdentity(Struct, frozen=True, kw_only=True):
    """The store on whose behalf somebody visits."""

    address: Address
    identity: Identity
    runtime: Runtime
    clock: Clock
    allow_weaker_durability: bool
    quotas: QuotaBook
    """as the last visitor saw them"""


def in_user_transaction(speaker: Speaker, house: StoreIdentity, work: Callable[[Tx], T]) -> T:
    """Run it in the user's transaction: all of it, or none, and the transaction goes on as before."""
    for left in reversed(range(TRIES_MAX)):
        try:
            return _visit_once(speaker, house, work)
        except Exception as error:
            if left and may_run_again(error):
                continue
            told = translated(error, house.address.shown)
            if told is error:
                raise
            raise told from error
    raise AssertionError("the last try answers or raises")


def ask_identity(schema: str) -> str:
    return (
        "SELECT (SELECT system_identifier FROM pg_control_system()), "  # noqa: S608  a name that was checked
        "(SELECT oid::bigint FROM pg_database WHERE datname = current_database()), "
        f"to_regclass('{schema}.migration')::oid::bigint"
    )


def _visit_once(speaker: Speaker, house: StoreIdentity, work: Callable[[Tx], T]) -> T:
    speaker.surely("SAVEPOINT ropewalk")
    try:
        now, found = _look(speaker, house)
        ours = settings_in(house.address.schema)
        if found["lock_timeout"] != "0":
            del ours["lock_timeout"]  # the user's own patience
        _set(speaker, ours)
        value = work(Tx(UserTransactionWire(Voice(speaker), now), LaneBook(house.quotas), SQL, CAREFUL))
        _set(speaker, {name: found[name] for name in ours})
        speaker.surely("RELEASE ropewalk")
    except BaseException:
        _undo(speaker)
        raise
    return value


def _look(speaker: Speaker, house: StoreIdentity) -> tuple[Instant, dict[str, str]]:
    """The time, and the settings as the user has them. Raises where this transaction cannot take a job."""
    names = "', '".join((*_LOOKED_AT, *settings_in(house.address.schema)))
    settings = f"SELECT json_object_agg(name, current_setting(name)) FROM unnest(ARRAY['{names}']) AS name"  # noqa: S608  ours
    answer = speaker.execute(f"{ask_identity(house.address.schema)}, {NOW}, ({settings})", binary=True)
    server, database, table, now, given = answer.rows[0]
    _check_place(Identity(server, database, table), house)
    found = _settings.decode(given)
    _check_settings(found)
    _check_durability(found["synchronous_commit"], house)
    return house.runtime.now() if house.clock == "runtime" else now, found


def _check_place(identity: Identity, house: StoreIdentity) -> None:
    if identity != house.identity:
        place = f"schema {house.address.schema} of {house.address.shown}"
        raise InvalidInput(f"connection= leads to another database than {place}: jobs go there", field="connection")


def _check_settings(found: dict[str, str]) -> None:
    isolation, read_only, encoding = (found[name] for name in _LOOKED_AT[:3])
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


def _check_durability(synchronous_commit: str, house: StoreIdentity) -> None:
    if synchronous_commit not in _KEPT and not house.allow_weaker_durability:
        raise WeakDurability(
            f"connection= could lose acknowledged jobs: synchronous_commit is {synchronous_commit!r}. Say "
            "SET LOCAL synchronous_commit = on in this transaction, or pass allow_weaker_durability=True to the app"
        )


def _set(speaker: Speaker, settings: dict[str, str]) -> None:
    chosen = ", ".join("set_config(%s, %s, true)" for _ in settings)
    speaker.execute(f"SELECT {chosen}", [word for pair in settings.items() for word in pair])


def _undo(speaker: Speaker) -> None:
    """Settings go back with the savepoint. On a broken line there is nothing to go back to, and somebody says so."""
    try:
        speaker.surely("ROLLBACK TO ropewalk; RELEASE ropewalk")
    except psycopg.Error:
        return


WANTED: Final = f"a psycopg (3) or asyncpg connection, or of SQLAlchemy on one of these {sqlalchemy_sessions.WANTED}"


class PostgresJoining:
    def __init__(self) -> None:
        self._watches = sqlalchemy_sessions.Watches()
        self._turns = ConnectionLocks()

    def join(self, connection: UserConnection, house: StoreIdentity) -> Join:
        if psycopg3.is_blocking(connection) or sqlalchemy_sessions.is_blocking(connection):
            return Blocking(lambda submissions, after: self._here(connection, _Errand(house, submissions), after))
        if (
            psycopg3.is_awaited(connection)
            or asyncpg.is_awaited(connection)
            or sqlalchemy_sessions.is_awaited(connection)
        ):
            return Awaited(lambda submissions, after: self._on_loop(connection, _Errand(house, submissions), after))
        raise unknown(connection, WANTED)

    def _here(self, connection: object, errand: _Errand, after_commit: AfterCommit) -> Answers:
        with self._turns.blocking(connection):
            begun = sqlalchemy_sessions.begun(connection)
            answers = errand.run(_speaker(begun.driver), notify=begun.session is None)
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers

    async def _on_loop(self, connection: object, errand: _Errand, after_commit: AfterCommit) -> Answers:
        async with self._turns.awaited(connection):
            begun = await sqlalchemy_sessions.begun_async(connection)
            speaker, notify = _async_speaker(begun.driver), begun.session is None
            runtime = errand.house.runtime
            answers = await on_this_loop(runtime, speaker, lambda bridge: errand.run(bridge, notify=notify))
            self._watches.after_commit(begun.session, lambda: after_commit(answers))
            return answers


class _Errand(Struct, frozen=True):
    """What to do in the user's transaction. `notify`: nobody will tell of its commit, so it does itself."""

    house: StoreIdentity
    submissions: Sequence[Submission]

    def run(self, speaker: Speaker, *, notify: bool) -> Answers:
        return in_user_transaction(speaker, self.house, lambda tx: self._write(tx, notify=notify))

    def _write(self, tx: Tx, *, notify: bool) -> Answers:
        answers = submit_all(tx, self.submissions, quotas.passing)
        address = self.house.address
        if notify and address.notify:
            # One letter a queue, the same for every job: of equal ones a transaction sends one, when it commits.
            for channel, letter in letters(address.schema, queues_served(self.submissions, answers)):
                tx.row("SELECT pg_notify(%s, %s)", (channel, letter))
        return answers


def _speaker(driver: object) -> Speaker:
    if psycopg3.is_blocking(driver):
        return psycopg3.PsycopgSpeaker(driver)
    raise unknown(driver, WANTED)


def _async_speaker(driver: object) -> AsyncSpeaker:
    if psycopg3.is_awaited(driver):
        return psycopg3.PsycopgAsyncSpeaker(driver)
    if asyncpg.is_awaited(driver):
        return asyncpg.AsyncpgSpeaker(driver)
    raise unknown(driver, WANTED)
