"""Completions that nobody else has to hear of, all of them in one statement: so in one trip.

Most settlements are nothing else. If one of them turns out otherwise (its lease is lost, or somebody depends on it
since it was claimed), the statement fails, nothing has happened, and the batch is settled like any other (holding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from psycopg.errors import DivisionByZero

from ropewalk.backends.sql import leases
from ropewalk.backends.sql.completion import leaves_only_a_result
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.flags import SETTLES_ALONE
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import Instant
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements

RESULTS_BYTES_MAX: Final = 4 << 20
_COMPLETE: Final = Move.COMPLETE


def settle(tx: Tx, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    asked = ask(owner, settlements, tx.given_now)
    if asked is not None:
        try:
            with tx.savepoint():
                tx.row(tx.sql.complete_in_one_statement, asked)
            return completed(settlements)
        except DivisionByZero:
            pass  # which is how it says so
    return leases.settle(tx, tx.lanes, owner, settlements)


def ask(owner: str, settlements: Sequence[Settlement], now: Instant | None) -> dict[str, SqlValue] | None:
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
        "5": _array(["NULL" if each.spent is None else each.spent.waited_us for each in ordered]),
        "6": _array(["NULL" if each.spent is None else each.spent.ran_us for each in ordered]),
        "results": b"".join(results),
        "owner": owner,
        "flags": SETTLES_ALONE,
        "now": now,
    }


def completed(settlements: Sequence[Settlement]) -> Settlements:
    """The answer, when it is done."""
    settled = [Settled(seq=each.seq, fence=each.fence, move=_COMPLETE) for each in settlements]
    return Settlements(settled=settled, ripple=Consequences())


def _alone(asked: Settlement) -> bool:
    return asked.alone and asked.move is _COMPLETE and not asked.lines and leaves_only_a_result(asked.sequel)


def _array(values: Sequence[int | str]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
