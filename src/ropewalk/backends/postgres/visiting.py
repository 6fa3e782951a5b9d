"""Inside a user's transaction: looked at first, entered behind a savepoint, left as it was found.

Our statements need our search path, and plans that hold for tables that grow and shrink. Such settings end with a
transaction, but this one goes on after us: they are put back, by us or by the savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import psycopg
from msgspec import Struct

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.connections import NOW, Clock, settings_in
from ropewalk.backends.postgres.drivers.driver import Speaker, Voice
from ropewalk.backends.postgres.faults import may_run_again, translated
from ropewalk.backends.postgres.statements import SQL
from ropewalk.backends.postgres.tx import Tx
from ropewalk.backends.postgres.wire.transaction import AtOnce
from ropewalk.backends.sql.lanes import LaneBook, QuotaBook
from ropewalk.domain.time import Instant
from ropewalk.errors import InvalidInput, WeakDurability
from ropewalk.ports.runtime import Runtime

T = TypeVar("T")

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


class House(Struct, frozen=True, kw_only=True):
    """The store on whose behalf somebody visits."""

    address: Address
    identity: Identity
    runtime: Runtime
    clock: Clock
    allow_weaker_durability: bool
    quotas: QuotaBook
    """as the last visitor saw them"""


def visit(speaker: Speaker, house: House, work: Callable[[Tx], T]) -> T:
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


def _visit_once(speaker: Speaker, house: House, work: Callable[[Tx], T]) -> T:
    speaker.surely("SAVEPOINT ropewalk")
    try:
        now, found = _look(speaker, house)
        ours = settings_in(house.address.schema)
        if found["lock_timeout"] != "0":
            del ours["lock_timeout"]  # the user's own patience
        _set(speaker, ours)
        value = work(Tx(AtOnce(Voice(speaker), now), LaneBook(house.quotas), SQL))
        _set(speaker, {name: found[name] for name in ours})
        speaker.surely("RELEASE ropewalk")
    except BaseException:
        _undo(speaker)
        raise
    return value


def _look(speaker: Speaker, house: House) -> tuple[Instant, dict[str, str]]:
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


def _check_place(identity: Identity, house: House) -> None:
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


def _check_durability(synchronous_commit: str, house: House) -> None:
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
