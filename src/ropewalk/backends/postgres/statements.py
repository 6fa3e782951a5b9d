"""The statements of the PostgreSQL store. They are checked against the manifest when this module is imported.

The variants for readers take no locks, and the careful ones let junk pass (backends/sql/damage.py).
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from ropewalk.backends.postgres.columns import PARTS
from ropewalk.backends.sql.blocks import load
from ropewalk.backends.sql.statements import Statements

_EACH: Final = re.compile(r"each\((\d+) (\w+)\)")
_VALUE: Final = r"(%(\1)s::\2[])[width_bucket(seq, %(1)s::bigint[])]"
"""This finds the value of a row in an array. The array of numbers is in order, so that it can be searched by halving,
and no join is needed."""
_JSON: Final = re.compile(r"(?<![%\w.:])((?:\w+\.)?\w+|coalesce\([\w.]+, '\{\}'\))::json\b")
_READABLE: Final = r"readable_json(\1)"
_LOCK: Final = re.compile(r"\s+FOR UPDATE(?: SKIP LOCKED)?")


def without_locks(statements: Statements) -> Statements:
    """Returns the statements without their row locks, for transactions that only read."""
    return Statements(**{name: _LOCK.sub("", block) for name, block in structs.asdict(statements).items()})


def _expanded(statements: Statements) -> Statements:
    """Replaces `each(…)` by the expression for the value of the row."""
    blocks = {name: _EACH.sub(_VALUE, block) for name, block in structs.asdict(statements).items()}
    return Statements(**blocks)


def _tolerant(statements: Statements) -> Statements:
    """Makes the statements read text that is no JSON as a JSON string, which the decoder of the row then refuses."""
    return Statements(**{name: _JSON.sub(_READABLE, block) for name, block in structs.asdict(statements).items()})


def _with_weaker_locks(statements: Statements) -> Statements:
    """Adds the statements that load jobs with weaker locks. A lease must stay renewable while a user's transaction
    refers to its job, however long that takes. So a transaction that only reads a job keeps it from ending by KEY
    SHARE, for which a renewal (NO KEY UPDATE) does not wait."""
    return structs.replace(
        statements,
        load_shared=statements.load_jobs.replace("FOR UPDATE", "FOR KEY SHARE"),
        load_to_note=statements.load_jobs.replace("FOR UPDATE", "FOR NO KEY UPDATE"),
    )


def _loaded(*, careful: bool = False) -> Statements:
    return load("ropewalk.backends.postgres", Statements, generated=PARTS, careful=careful)


SQL: Final = _with_weaker_locks(_expanded(_loaded()))
READING: Final = without_locks(SQL)
CAREFUL: Final = _with_weaker_locks(_expanded(_tolerant(_loaded(careful=True))))
CAREFUL_READING: Final = without_locks(CAREFUL)
