"""When is a submission a repetition? One rule, applied by the store inside the inserting transaction."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b

from msgspec import Struct

from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord, NewJob
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import Conflict, SpawnMismatch


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


class KeyMatch(Enum):
    FREE = "free"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


def input_hash(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=16).digest()


def judge_key(held: KeyRecord | None, asked: IdempotencyKey, hashed: bytes, now: Instant) -> KeyMatch:
    """The new call's scope decides: `open` hits while the job is not terminal, `any` also within the window."""
    if held is None:
        return KeyMatch.FREE
    still_open = held.closed_at is None
    in_window = asked.scope == "any" and held.opened_at > now - asked.window_us
    if not (still_open or in_window):
        return KeyMatch.FREE
    return KeyMatch.DUPLICATE if held.input_hash == hashed else KeyMatch.CONFLICT


def judge_id(held: JobRecord, new: NewJob) -> KeyMatch:
    """The same id again: the same content is a repetition, anything else a conflict."""
    same = held.type == new.type and held.input == new.input
    return KeyMatch.DUPLICATE if same else KeyMatch.CONFLICT


def opened(new: NewJob, asked: IdempotencyKey, hashed: bytes, now: Instant) -> KeyRecord:
    """The key as the job that takes it opens it."""
    return KeyRecord(
        tenant=new.tenant,
        type=new.type,
        key=asked.key,
        job_id=new.id,
        run=1,
        input_hash=hashed,
        opened_at=now,
        keep_us=asked.window_us,
    )


def id_taken(held: JobRecord, new: NewJob) -> Conflict:
    return Conflict(f"id={new.id!r} already names a {held.type} job with other content: use a new id")


def spawn_key_taken(held: JobRecord, new: NewJob) -> SpawnMismatch:
    return SpawnMismatch(
        f"spawn key {new.spawn_key!r} of job {new.parent_id} stands for a {held.type} job with other content: "
        "give this child a key of its own"
    )


def key_taken(held: KeyRecord) -> Conflict:
    return Conflict(
        f"idempotency key {held.key!r} of type {held.type} already stands for job {held.job_id} "
        "with another input: use a new key"
    )
