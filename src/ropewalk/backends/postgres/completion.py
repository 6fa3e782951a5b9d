"""Completions that nobody else has to hear of, all of them in one statement: so in one trip.

Most settlements are nothing else. The loop itself waits for the trip where it may (`Session.at_once`), else a thread
does. If one of the settlements turns out otherwise (its lease is lost, or somebody depends on its job since it was
claimed), the statement fails and nothing has happened: then the batch is settled as on any store (`_settle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from psycopg.errors import DivisionByZero

from ropewalk.backends.postgres.connections import Session
from ropewalk.backends.postgres.statements import SQL
from ropewalk.backends.postgres.tx import said
from ropewalk.backends.sql import completion
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.flags import SETTLES_ALONE
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.completion import leaves_only_a_result
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements

RESULTS_BYTES_MAX: Final = 4 << 20
_COMPLETE: Final = Move.COMPLETE


async def settle(session: Session, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    asked = _asked(owner, settlements, None)
    if asked is not None and await session.at_once(said(SQL.complete_in_one_statement, asked)) is not None:
        return _completed(settlements)
    return await session.ask(lambda tx: _settle(tx, owner, settlements))


def _settle(tx: Tx, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    asked = _asked(owner, settlements, tx.known_now)
    if asked is not None:
        try:
            with tx.savepoint():
                tx.row(tx.sql.complete_in_one_statement, asked)
            return _completed(settlements)
        except DivisionByZero:
            pass  # which is how it says so
    return completion.settle(tx, tx.lanes, owner, settlements)


def _asked(owner: str, settlements: Sequence[Settlement], now: Instant | None) -> dict[str, SqlValue] | None:
    """What the statement is given, if all of them are such, as far as known. Without `now` the store knows the time."""
    if not all(map(_alone, settlements)):
        return None
    ordered = sorted({each.seq: each for each in settlements}.values(), key=lambda each: each.seq)
    results = [each.result or b"" for each in ordered]
    ends = list(accumulate(map(len, results), initial=1))
    if len(ordered) < len(settlements) or ends[-1] > RESULTS_BYTES_MAX:
        return None
    return {
        "1": _array([each.seq for each in ordered]),
        "2": _array([each.fence for each in ordered]),
        "3": _array(ends[:-1]),
        "4": _array(["NULL" if each.result is None else len(each.result) for each in ordered]),
        "5": _array(["NULL" if each.timing is None else each.timing.waited_us for each in ordered]),
        "6": _array(["NULL" if each.timing is None else each.timing.ran_us for each in ordered]),
        "results": b"".join(results),
        "owner": owner,
        "flags": SETTLES_ALONE,
        "now": now,
    }


def _completed(settlements: Sequence[Settlement]) -> Settlements:
    """The answer, when it is done."""
    settled = [Settled(seq=each.seq, fence=each.fence, move=_COMPLETE) for each in settlements]
    return Settlements(settled=settled, consequences=Consequences())


def _alone(asked: Settlement) -> bool:
    return asked.alone and asked.move is _COMPLETE and not asked.lines and leaves_only_a_result(asked.plan)


def _array(values: Sequence[int | str]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
