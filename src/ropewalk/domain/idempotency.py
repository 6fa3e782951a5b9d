"""When is a submission a repetition? One rule, applied by the store inside the inserting transaction."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b

from msgspec import Struct

from ropewalk.domain.instants import Instant, Span
from ropewalk.domain.job import IdempotencyKey, JobRecord, NewJob


class KeyRecord(Struct, kw_only=True):
    """(tenant, type, key) → the job that opened it. Kept past the job's end, until its window is over."""

    tenant: str
    type: str
    key: str
    job_id: str
    run: int
    input_hash: bytes
    opened_at: Instant
    closed_at: Instant | None = None
    keep_us: Span = 0
    """the longest window any submission asked for"""


class Verdict(Enum):
    FREE = "free"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


def input_hash(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=16).digest()


def judge_key(held: KeyRecord | None, asked: IdempotencyKey, hashed: bytes, now: Instant) -> Verdict:
    """The new call's scope decides: `open` hits while the job is not terminal, `any` also within the window."""
    if held is None:
        return Verdict.FREE
    still_open = held.closed_at is None
    in_window = asked.scope == "any" and held.opened_at > now - asked.window_us
    if not (still_open or in_window):
        return Verdict.FREE
    return Verdict.DUPLICATE if held.input_hash == hashed else Verdict.CONFLICT


def judge_id(held: JobRecord, new: NewJob) -> Verdict:
    """The same id again: the same content is a repetition, anything else a conflict."""
    same = held.type == new.type and held.input == new.input
    return Verdict.DUPLICATE if same else Verdict.CONFLICT
