"""When is a submission a repetition? One rule, applied by the store inside the inserting transaction."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.dependency import Gate, NewGate
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


_COMPARED: Final = {
    "queue": "queue",
    "max_attempts": "max_attempts",
    "max_crashes": "max_crashes",
    "timeout": "timeout_us",
    "backoff": "backoff",
    "lease": "lease_us",
    "correlation_id": "correlation_id",
    "tags": "tags",
    "workflow_id": "workflow_id",
    "workflow_type": "workflow_type",
    "on_failure": "on_failure",
    "fairness": "fairness",
    "limit": "limit_key",
}
"""options whose value is stored as it was given, with the field of NewJob and JobRecord that holds it"""


def ignored_options(held: JobRecord, new: NewJob) -> tuple[str, ...]:
    """The options in which a repetition differs from the job that is there, by their names, sorted.

    The job keeps its own: a repetition changes nothing. What the record no longer tells, such as when it was to start
    once it has moved, is not among them.
    """
    if held.damaged:
        return ()
    differ = [option for option, field in _COMPARED.items() if getattr(held, field) != getattr(new, field)]
    if held.priority != new.priority and not new.inherits_priority:
        differ.append("priority")
    if new.key is not None and held.idempotency_key != new.key.key:
        differ.append("idempotency_key")
    if _is_gated_otherwise(held.gate, new.gate):
        differ.append("depends_on")
    if held.run == 1 and held.deadline != _deadline(held, new):
        differ.append("ttl" if new.deadline is None and new.ttl_us is not None else "deadline")
    if held.last_move is Move.SUBMIT and held.rev == 1 and held.gate is None:
        asked = new.run_at if new.run_at is not None else held.created_at + new.delay_us
        if held.run_at != max(held.created_at, asked):
            differ.append("delay" if new.run_at is None else "run_at")
    return tuple(sorted(differ))


def _deadline(held: JobRecord, new: NewJob) -> Instant | None:
    if new.deadline is None and new.ttl_us is not None:
        return held.created_at + new.ttl_us
    return new.deadline


def _is_gated_otherwise(held: Gate | None, new: NewGate | None) -> bool:
    """As far as the gate itself tells: who the parents were is not kept in it."""
    if held is None or new is None:
        return (held is None) != (new is None)
    need = min(new.need, held.total)  # a parent named twice counts once
    return (held.need, held.of, held.policy) != (need, new.of, new.policy)


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
