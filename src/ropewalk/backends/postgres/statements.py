"""This store's statements, and the same for those who only look: without locks."""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from ropewalk.backends.postgres.columns import PARTS
from ropewalk.backends.sql.blocks import load
from ropewalk.backends.sql.statements import Statements

_EACH: Final = re.compile(r"each\((\d+) (\w+)\)")
_VALUE: Final = r"(%(\1)s::\2[])[width_bucket(seq, %(1)s::bigint[])]"
"""found by halving: the array of numbers is in order, so that no join is needed to bring each row its own values"""
_JSON: Final = re.compile(r"(?<![%\w.:])((?:\w+\.)?\w+|coalesce\([\w.]+, '\{\}'\))::json\b")
_READABLE: Final = r"readable_json(\1)"
_LOCK: Final = re.compile(r"\s+FOR UPDATE(?: SKIP LOCKED)?")


def without_locks(statements: Statements) -> Statements:
    return Statements(**{name: _LOCK.sub("", block) for name, block in structs.asdict(statements).items()})


def _expanded(statements: Statements) -> Statements:
    blocks = {name: _EACH.sub(_VALUE, block) for name, block in structs.asdict(statements).items()}
    return Statements(**blocks)


def _tolerant(statements: Statements) -> Statements:
    """What is no JSON is told as the text it is, and refused where its row is decoded."""
    return Statements(**{name: _JSON.sub(_READABLE, block) for name, block in structs.asdict(statements).items()})


def _with_weaker_locks(statements: Statements) -> Statements:
    """A lease must stay renewable while a user's transaction refers to its job, however long that is open: whoever only
    reads a job keeps it from ending with KEY SHARE, which a renewal (NO KEY UPDATE) does not wait for."""
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
