"""Settles a batch of completions that change only their own rows by one statement, and so in one round trip.

Most batches are of this kind. If possible, the event loop itself waits for the answer (`Session.transact_on_loop`),
otherwise the thread of the connection does. If one of the completions is different after all, because its lease is lost
or because another job has come to depend on its job, the statement fails and changes nothing. Then the batch is settled
as on any SQL store (backends/sql/completion.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from psycopg.errors import DivisionByZero

from ropewalk.backends.postgres.connections import Session
from ropewalk.backends.postgres.statements import SQL
from ropewalk.backends.postgres.tx import statements_of
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
"""Results of a batch that are larger together are not sent by this statement."""
_COMPLETE: Final = Move.COMPLETE


async def settle(session: Session, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    """Settles a batch, by one statement if possible."""
    values = _values(owner, settlements, None)
    if values is not None:
        answers = await session.transact_on_loop(statements_of(SQL.complete_in_one_statement, values))
        if answers is not None:
            return _completed(settlements)
    return await session.ask(lambda tx: _settle(tx, owner, settlements))


def _settle(tx: Tx, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    values = _values(owner, settlements, tx.known_now)
    if values is not None:
        try:
            with tx.savepoint():
                tx.row(tx.sql.complete_in_one_statement, values)
            return _completed(settlements)
        except DivisionByZero:
            pass  # By this error the statement reports that it cannot complete all of them.
    return completion.settle(tx, tx.lanes, owner, settlements)


def _values(owner: str, settlements: Sequence[Settlement], now: Instant | None) -> dict[str, SqlValue] | None:
    """Returns the values for the statement; None if one of the settlements surely needs another way. If `now` is None,
    the statement uses the server's clock."""
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
    """Returns the answer after the statement has completed all of them."""
    settled = [Settled(seq=each.seq, fence=each.fence, move=_COMPLETE) for each in settlements]
    return Settlements(settled=settled, consequences=Consequences())


def _alone(asked: Settlement) -> bool:
    """Whether this completion probably changes only its own row. The statement checks that again."""
    return asked.alone and asked.move is _COMPLETE and not asked.lines and leaves_only_a_result(asked.plan)


def _array(values: Sequence[int | str]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
