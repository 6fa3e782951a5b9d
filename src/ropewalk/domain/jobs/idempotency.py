"""Decides whether a submission repeats an earlier one. The store applies this in the transaction that inserts jobs."""

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
    """An idempotency key that a job has taken. A store keeps it after the end of the job until its window is over."""

    tenant: str
    type: str
    key: str
    job_id: str
    """The id of the job that took the key."""
    run: int
    """The run of that job; its next run takes the key again."""
    input_hash: bytes
    """The hash of the job's input; a submission with the same key and another input is a conflict."""
    opened_at: Instant
    closed_at: Instant | None = None
    """The job ended at this instant; None while it is open."""
    keep_us: Span = 0
    """The longest window that any submission with this key named."""


class KeyMatch(Enum):
    """How a submission relates to the job that has the same key or id."""

    FREE = "free"
    """No job has the key, or none that still counts, so the submission is a new job."""
    DUPLICATE = "duplicate"
    """The submission repeats the job."""
    CONFLICT = "conflict"
    """The job has other content, so the submission is refused."""


def input_hash(encoded: bytes) -> bytes:
    return blake2b(encoded, digest_size=16).digest()


def judge_key(existing: KeyRecord | None, key: IdempotencyKey, input_digest: bytes, now: Instant) -> KeyMatch:
    """Compares a submission that has this key with the record of the key, if there is one.

    The scope of the submission decides: with "open" the key is taken while its job is open, with "any" also within the
    window after the job was submitted.
    """
    if existing is None:
        return KeyMatch.FREE
    still_open = existing.closed_at is None
    in_window = key.scope == "any" and existing.opened_at > now - key.window_us
    if not (still_open or in_window):
        return KeyMatch.FREE
    return KeyMatch.DUPLICATE if existing.input_hash == input_digest else KeyMatch.CONFLICT


def judge_id(existing: JobRecord, new: NewJob) -> KeyMatch:
    """Compares a submission with the job that has the same id: with the same type and input it is a repetition."""
    same = existing.type == new.type and existing.input == new.input
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
"""The options whose values are stored as they were submitted, each with the field of NewJob and JobRecord."""


def ignored_options(existing: JobRecord, new: NewJob) -> tuple[str, ...]:
    """Returns the sorted names of the options in which a repetition differs from the existing job.

    The job keeps its own options, because a repetition changes nothing. Options that the record no longer contains are
    not compared: the start time of a job, for example, is overwritten by its first move.
    """
    if existing.damaged:
        return ()
    differ = [option for option, field in _COMPARED.items() if getattr(existing, field) != getattr(new, field)]
    if existing.priority != new.priority and not new.inherits_priority:
        differ.append("priority")
    if new.key is not None and existing.idempotency_key != new.key.key:
        differ.append("idempotency_key")
    if _is_gated_otherwise(existing.gate, new.gate):
        differ.append("depends_on")
    if existing.run == 1 and existing.deadline != _deadline(existing, new):
        differ.append("ttl" if new.deadline is None and new.ttl_us is not None else "deadline")
    if existing.last_move is Move.SUBMIT and existing.rev == 1 and existing.gate is None:
        run_at = new.run_at if new.run_at is not None else existing.created_at + new.delay_us
        if existing.run_at != max(existing.created_at, run_at):
            differ.append("delay" if new.run_at is None else "run_at")
    return tuple(sorted(differ))


def _deadline(existing: JobRecord, new: NewJob) -> Instant | None:
    if new.deadline is None and new.ttl_us is not None:
        return existing.created_at + new.ttl_us
    return new.deadline


def _is_gated_otherwise(existing: Gate | None, new: NewGate | None) -> bool:
    """Whether two gates differ in what a stored gate contains; it does not contain the ids of the parents."""
    if existing is None or new is None:
        return (existing is None) != (new is None)
    need = min(new.need, existing.total)  # A parent that is named twice counts once.
    return (existing.need, existing.of, existing.policy) != (need, new.of, new.policy)


def opened_key(new: NewJob, key: IdempotencyKey, input_digest: bytes, now: Instant) -> KeyRecord:
    """Returns the record of a key that a new job takes."""
    return KeyRecord(
        tenant=new.tenant,
        type=new.type,
        key=key.key,
        job_id=new.id,
        run=1,
        input_hash=input_digest,
        opened_at=now,
        keep_us=key.window_us,
    )


def id_taken(existing: JobRecord, new: NewJob) -> Conflict:
    return Conflict(f"id={new.id!r} already names a {existing.type} job with other content: use a new id")


def spawn_key_taken(existing: JobRecord, new: NewJob) -> SpawnMismatch:
    return SpawnMismatch(
        f"spawn key {new.spawn_key!r} of job {new.parent_id} stands for a {existing.type} job with other content: "
        "give this child a key of its own"
    )


def key_taken(existing: KeyRecord) -> Conflict:
    return Conflict(
        f"idempotency key {existing.key!r} of type {existing.type} already stands for job {existing.job_id} "
        "with another input: use a new key"
    )
