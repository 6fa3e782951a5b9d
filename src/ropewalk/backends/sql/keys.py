"""The rows of idempotency keys. domain.jobs.idempotency decides what a key means for a submission.

A key may outlive the end of its job but not the job itself: while its window lasts, the job is not pruned, and when the
job is deleted, the key is, too. So a key always names a job that exists.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.jobs.flags import KEYED
from ropewalk.domain.jobs.idempotency import KeyRecord, input_hash
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.submission import MustWait

KeyName: TypeAlias = tuple[str, str, str]
"""The name of a key: (tenant, type, key)."""


class KeyBook:
    """The idempotency keys of one transaction: each is read once, and all changes are written together."""

    def __init__(self, tx: Tx, *, wait: bool = True) -> None:
        self._tx = tx
        self._wait = wait
        self._known: dict[KeyName, KeyRecord | None] = {}
        self._changed: dict[KeyName, KeyRecord] = {}
        self._closed: list[Row] = []

    def find(self, name: KeyName) -> KeyRecord | None:
        """Reads and locks a key until the end of the transaction. Raises MustWait if another transaction has it and
        this book was made with `wait=False`."""
        if name not in self._known:
            self._write_closed()
            self._known[name] = _find(self._tx, name, wait=self._wait)
        return self._known[name]

    def put(self, held: KeyRecord) -> None:
        """Stores a key that is new or has changed."""
        name = (held.tenant, held.type, held.key)
        self._known[name] = self._changed[name] = held

    def close(self, job: JobRecord) -> None:
        """Closes the key of a job that became terminal."""
        name = _name(job)
        if name is None:
            return
        held = self._known.get(name)
        if held is None:
            self._known.pop(name, None)
            self._closed.append((*name, job.id))
        elif held.job_id == job.id:
            held.closed_at = self._tx.now
            self.put(held)

    def may_reopen(self, job: JobRecord) -> bool:
        """Whether no other open job holds the key of this finished one."""
        name = _name(job)
        held = None if name is None else self.find(name)
        return held is None or held.job_id == job.id or held.closed_at is not None

    def move(self, job: JobRecord) -> None:
        """Lets the key of a waiting job stand for its new input, after that was updated."""
        name = _name(job)
        held = None if name is None else self.find(name)
        if held is not None and held.job_id == job.id:
            held.input_hash = input_hash(job.input)
            self.put(held)

    def reopen(self, job: JobRecord) -> None:
        """Opens the key of a job that was retried, even if it was pruned or given to another job meanwhile."""
        name = _name(job)
        if name is None:
            return
        held = self.find(name)
        if held is None or held.job_id != job.id:
            tenant, job_type, key = name
            held = KeyRecord(
                tenant=tenant,
                type=job_type,
                key=key,
                job_id=job.id,
                run=job.run,
                input_hash=input_hash(job.input),
                opened_at=self._tx.now,
            )
        held.run = job.run
        held.input_hash = input_hash(job.input)
        held.closed_at = None
        self.put(held)

    def flush(self) -> None:
        self._write_closed()
        changed, self._changed = self._changed, {}
        self._tx.run_rows(self._tx.sql.put_keys, [_row(held) for held in changed.values()])

    def _write_closed(self) -> None:
        closed, self._closed = self._closed, []
        self._tx.run_rows(self._tx.sql.close_keys, closed, self._tx.now)


def _name(job: JobRecord) -> KeyName | None:
    if not job.flags & KEYED:
        return None
    assert job.idempotency_key is not None, f"job {job.id} is flagged as keyed and has no key"
    return job.tenant, job.type, job.idempotency_key


def _find(tx: Tx, name: KeyName, *, wait: bool) -> KeyRecord | None:
    found = tx.row(tx.sql.find_key, name) if wait or not tx.sql.find_key_if_free else _found_if_free(tx, name)
    if found is None:
        return None
    tenant, job_type, key = name
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


def _found_if_free(tx: Tx, name: KeyName) -> tuple[Any, ...] | None:
    free, found = tx.rows(tx.sql.find_key_if_free, name)
    if free != (True,):
        raise MustWait
    return found


def _row(held: KeyRecord) -> Row:
    name = (held.tenant, held.type, held.key)
    return (*name, held.job_id, held.run, held.input_hash, held.opened_at, held.closed_at, held.keep_us)
