"""Threads that each own one connection: a request is one transaction, run again where others were in the way.

What waits for a lock on one connection holds up nobody on another, so that renewals never stand behind a long
settlement. A connection that broke is never used again; before the commit nothing happened, during it nobody knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import psycopg

from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.requests import Request, deliver
from ropewalk.backends._sql.servant import Servant
from ropewalk.backends._sql.statements import Statements
from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.faults import breaks_connection, may_run_again, translated
from ropewalk.backends.postgres.line import SILENCE_SECONDS_MAX, Line
from ropewalk.backends.postgres.opening import Opened, open_store
from ropewalk.backends.postgres.statements import READING, SQL
from ropewalk.backends.postgres.tx import Connection, Tx
from ropewalk.domain.instants import Instant
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.runtime import Runtime

Clock: TypeAlias = Literal["server", "runtime"]

TRIES_MAX: Final = 10
AGAIN_SECONDS: Final = 0.01
LOCK_WAIT: Final = "10s"
SILENCE: Final = "10s"
"""a process that stops in the middle of a transaction keeps its locks no longer"""
PAUSE_SECONDS_FIRST: Final = 0.1
PAUSE_SECONDS_MAX: Final = 5.0

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# Every statement of ours finds few rows by an index, whatever the statistics say of a table that grows and shrinks.
_PLANS: Final = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
_log = logging.getLogger("ropewalk.postgres")


class Door:
    """How connections are made: which settings were found, and since when none could be made."""

    def __init__(
        self, runtime: Runtime, address: Address, *, allow_weaker_durability: bool, migrate: bool = True
    ) -> None:
        self.address = address
        self.weakness: str | None = None
        self.replicated = False
        self._runtime = runtime
        self._allow_weaker_durability = allow_weaker_durability
        self._migrate = migrate
        self._failed: StoreUnavailable | None = None
        self._closed_until = 0.0
        self._pause_seconds = PAUSE_SECONDS_FIRST

    def open(self, *, silence_seconds_max: float = SILENCE_SECONDS_MAX) -> Line:
        """While the server does not answer, most are told so at once: one in a while tries."""
        if self._failed is not None and self._runtime.monotonic() < self._closed_until:
            raise self._failed
        try:
            opened = open_store(
                self.address, allow_weaker_durability=self._allow_weaker_durability, migrate=self._migrate
            )
        except psycopg.Error as error:
            told = translated(error, self.address.shown)
            if isinstance(told, StoreUnavailable):
                self._wait(told)
            raise told from error
        self._failed, self._pause_seconds = None, PAUSE_SECONDS_FIRST
        self._show(opened)
        opened.db.silence_seconds_max = silence_seconds_max
        return opened.db

    def _wait(self, failed: StoreUnavailable) -> None:
        self._failed = failed
        self._closed_until = self._runtime.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)

    def _show(self, opened: Opened) -> None:
        if opened.weakness is not None and self.weakness is None:
            _log.warning("%s could lose acknowledged jobs, as allowed: %s", self.address.shown, opened.weakness)
        self.weakness, self.replicated = opened.weakness, opened.replicated


class Session(Servant):
    """One thread, one connection. `clock="runtime"` lets a fake clock decide instead of the server's."""

    _begin_as: str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    _sql: Statements = SQL
    _plans: tuple[str, ...] = _PLANS
    _silence_seconds_max: float = SILENCE_SECONDS_MAX

    def __init__(self, runtime: Runtime, door: Door, name: str, *, clock: Clock) -> None:
        self._door = door
        self._clock = clock
        self._lanes = LaneBook()
        self._db: Connection | None = None
        self._begin = b""
        super().__init__(runtime, f"ropewalk-postgres-{name}")

    async def _serve(self, requests: list[Request[Any]]) -> None:
        for request in requests:
            for number in range(1, TRIES_MAX + 1):
                with self._busy:
                    answered = self._answered(request, last=number == TRIES_MAX)
                if answered:
                    break
                await self._let_pass(number)
            deliver([request])

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
            request.fail(translated(error, self._door.address.shown))
        return True

    def _transact(self, work: Callable[[Tx], object]) -> object:
        db, now = self._begun()
        try:
            value = work(Tx(db, now, self._lanes, self._sql, begin=self._begin))
        except BaseException as error:
            self._undo(error)
            raise
        self._commit(db)
        return value

    def _begun(self) -> tuple[Connection, Instant]:
        """A connection that broke while nobody used it is replaced: nothing has happened on it yet."""
        if self._db is not None:
            try:
                return self._db, self._begin_on(self._db)
            except psycopg.Error as error:
                self._undo(error)
                if not breaks_connection(error):
                    raise
        self._db = self._door.open(silence_seconds_max=self._silence_seconds_max)
        self._begin = f"{self._begin_as}; ".encode() + self._settled_in(self._db)
        return self._db, self._begin_on(self._db)

    def _settled_in(self, db: Connection) -> bytes:
        """How every transaction begins: where the session is ours alone, it keeps its settings."""
        schema = self._door.address.schema
        if db.prepare_threshold is None:
            return beginning(schema, self._plans)
        db.execute(beginning(schema, self._plans, for_good=True))
        return f"SELECT {NOW}".encode()

    def _begin_on(self, db: Connection) -> Instant:
        cursor = db.execute(self._begin)
        while cursor.nextset():
            pass
        found = cursor.fetchone()
        assert found is not None
        now: Instant = self._runtime.now() if self._clock == "runtime" else found[0]
        return now

    def _commit(self, db: Connection) -> None:
        try:
            answer = db.execute(b"COMMIT").statusmessage
        except psycopg.Error as error:
            self._undo(error)
            raise translated(error, self._door.address.shown, committing=True) from error
        assert answer == "COMMIT", f"a transaction in which a statement had failed was committed: {answer}"

    def _undo(self, error: BaseException) -> None:
        """Roll back; where even that is impossible, or the line broke, there is nothing to be saved."""
        db = self._db
        if db is None:
            return
        try:
            if not breaks_connection(error) and not db.closed:
                db.execute(b"ROLLBACK")
                return
        except psycopg.Error:
            _log.debug("could not roll back after %s", error)
        self._disconnect()

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        self._lanes.forget()
        if db is not None:
            db.close()


class ReadingSession(Session):
    """Everything one request reads is of one instant."""

    _begin_as = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _sql = READING
    _plans = ("jit",)
    _silence_seconds_max = 25.0  # to count a great many takes its time


def beginning(schema: str, off: tuple[str, ...] = _PLANS, *, for_good: bool = False) -> bytes:
    """Settings that end with the transaction (no session is ours behind a pooler), and the time, in one round trip."""
    settings = settings_in(schema, off) | {"idle_in_transaction_session_timeout": SILENCE}
    until = "false" if for_good else "true"
    chosen = ", ".join(f"set_config('{name}', '{value}', {until})" for name, value in settings.items())
    return f"SELECT {NOW}, {chosen}".encode()


def settings_in(schema: str, off: tuple[str, ...] = _PLANS) -> dict[str, str]:
    """What our statements need around them."""
    settings = {"search_path": f"{schema}, pg_temp", "lock_timeout": LOCK_WAIT} | dict.fromkeys(off, "off")
    if off == _PLANS:  # which leave no choice that would depend on the values
        settings["plan_cache_mode"] = "force_generic_plan"
    return settings
