"""Which connections a job can be enqueued through, and how each is spoken to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.backends.postgres.drivers import asyncpg, psycopg3
from ropewalk.backends.postgres.drivers.driver import AsyncSpeaker, Speaker
from ropewalk.backends.postgres.loop_bridge import on_this_loop
from ropewalk.backends.postgres.notifier import letters
from ropewalk.backends.postgres.tx import Tx
from ropewalk.backends.postgres.visiting import House, visit
from ropewalk.backends.sql import quotas, sqlalchemy_sessions
from ropewalk.backends.sql.connection_locks import Turns
from ropewalk.backends.sql.user_transactions import queues_served, submit_all, unknown
from ropewalk.ports.store.messages import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Awaited, Blocking, Join, UserConnection

WANTED: Final = f"a psycopg (3) or asyncpg connection, or of SQLAlchemy on one of these {sqlalchemy_sessions.WANTED}"


class PostgresJoining:
    def __init__(self) -> None:
        self._watches = sqlalchemy_sessions.Watches()
        self._turns = Turns()

    def join(self, connection: UserConnection, house: House) -> Join:
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

    house: House
    submissions: Sequence[Submission]

    def run(self, speaker: Speaker, *, notify: bool) -> Answers:
        return visit(speaker, self.house, lambda tx: self._write(tx, notify=notify))

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
