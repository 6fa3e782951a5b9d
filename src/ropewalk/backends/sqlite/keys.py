"""Idempotency keys as rows. domain.idempotency judges, this remembers.

A key outlives its job's end, not the job itself: it keeps its job from being pruned while its window lasts, and goes
when the job is deleted. So a key always names a job that is there.
"""

from __future__ import annotations

from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.flags import KEYED
from ropewalk.domain.idempotency import KeyRecord, input_hash
from ropewalk.domain.job import JobRecord


def find(tx: Tx, tenant: str, job_type: str, key: str) -> KeyRecord | None:
    found = tx.row(SQL.find_key, (tenant, job_type, key))
    if found is None:
        return None
    job_id, run, hashed, opened_at, closed_at, keep_us = found
    return KeyRecord(
        tenant=tenant,
        type=job_type,
        key=key,
        job_id=job_id,
        run=run,
        input_hash=hashed,
        opened_at=opened_at,
        closed_at=closed_at,
        keep_us=keep_us,
    )


def put(tx: Tx, held: KeyRecord) -> None:
    name = (held.tenant, held.type, held.key)
    what = (held.job_id, held.run, held.input_hash, held.opened_at, held.closed_at, held.keep_us)
    tx.run(SQL.put_key, (*name, *what))


def close(tx: Tx, job: JobRecord) -> None:
    """The job became terminal."""
    if job.flags & KEYED:
        tx.run(SQL.close_key, (tx.now, job.tenant, job.type, job.idempotency_key, job.id))


def may_reopen(tx: Tx, job: JobRecord) -> bool:
    """Whether no other open job holds the key of this finished one."""
    held = _of(tx, job)
    return held is None or held.job_id == job.id or held.closed_at is not None


def reopen(tx: Tx, job: JobRecord) -> None:
    """The job was revived. If its key was pruned or passed on meanwhile, it opens it anew."""
    if not job.flags & KEYED:
        return
    held = _of(tx, job)
    if held is None or held.job_id != job.id:
        assert job.idempotency_key is not None
        held = KeyRecord(
            tenant=job.tenant,
            type=job.type,
            key=job.idempotency_key,
            job_id=job.id,
            run=job.run,
            input_hash=input_hash(job.input),
            opened_at=tx.now,
        )
    held.run = job.run
    held.closed_at = None
    put(tx, held)


def _of(tx: Tx, job: JobRecord) -> KeyRecord | None:
    if not job.flags & KEYED:
        return None
    assert job.idempotency_key is not None, f"job {job.id} is flagged as keyed and has no key"
    return find(tx, job.tenant, job.type, job.idempotency_key)
