"""The job records, attempts and events of one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ropewalk.backends.sql import records
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.rows import json_text, load
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.transition import Effects


class Journal:
    """The attempts and events of one transaction, which are collected and written together."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._attempts: list[Row] = []
        self._events: list[Row] = []

    def add(self, effects: Effects) -> None:
        if effects.attempt is not None:
            self._attempts.append(_attempt_row(effects.attempt))
        if effects.event is not None:
            self.add_event(effects.event)

    def add_event(self, event: EventRecord) -> None:
        self._events.append((event.seq, event.rev, event.kind, event.at, event.reason))

    def flush(self) -> None:
        attempts, self._attempts = self._attempts, []
        events, self._events = self._events, []
        self._tx.run_rows(self._tx.sql.insert_attempts, attempts)
        self._tx.run_rows(self._tx.sql.insert_events, events)


def _attempt_row(ended: AttemptRecord) -> Row:
    return (
        ended.seq,
        ended.fence,
        ended.run,
        ended.attempt,
        ended.move.value,
        ended.start_rev,
        ended.rev,
        ended.started_at,
        ended.ended_at,
        ended.owner,
        json_text(ended.error),
        ended.next_run_at,
    )


_ints = msgspec.json.Decoder(list[int])


class JobBook:
    """The job records of one transaction: each is loaded once, changed in place, and written back with the others."""

    def __init__(self, tx: Tx, lanes: LaneBook) -> None:
        self._tx = tx
        self._lanes = lanes
        self._by_seq: dict[int, JobRecord] = {}
        self._by_id: dict[tuple[str, str], JobRecord] = {}
        """The new jobs, which are not in the table yet, by (tenant, id)."""
        self._new: list[JobRecord] = []
        self._taken: dict[int, JobRecord] = {}
        self._shared: set[int] = set()
        """The jobs that were loaded with a shared lock: other transactions may change their leases and progress."""

    def find(self, tenant: str, ids: Iterable[str], *, shared: bool = False) -> dict[str, JobRecord]:
        wanted = dict.fromkeys(ids)
        found = {each: job for each in wanted if (job := self._by_id.get((tenant, each))) is not None}
        others = [each for each in wanted if each not in found]
        if others:
            asked = self._asked(self._tx.sql.seqs_of_ids, _json(others), tenant, shared=shared)
            found |= {job.id: job for job in asked}
        return found

    def load(self, seqs: Iterable[int], *, shared: bool = False) -> list[JobRecord]:
        wanted = list(seqs)
        shared = shared and bool(self._tx.sql.load_shared)
        statement = self._tx.sql.load_shared if shared else self._tx.sql.load_jobs
        for job in load(self._tx, [seq for seq in wanted if seq not in self._by_seq], statement):
            self._by_seq[job.seq] = job
            if shared:
                self._shared.add(job.seq)
        return [self._by_seq[seq] for seq in wanted if seq in self._by_seq]

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        self.flush()
        children = self._asked(self._tx.sql.seqs_of_spawns, _json(list(keys)), parent_id, tenant)
        return {job.spawn_key: job for job in children if job.spawn_key is not None}

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        self.flush()
        return next(iter(self._asked(self._tx.sql.chain_of, chain_id, tenant, 1, shared=True)), None)

    def number(self, jobs: Sequence[JobRecord]) -> None:
        for job, seq in zip(jobs, self._tx.take_seqs(len(jobs)), strict=True):
            job.seq = seq

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        self._new += jobs
        for job in jobs:
            self._by_seq[job.seq] = self._by_id[job.tenant, job.id] = job

    def take(self, job: JobRecord) -> None:
        """Registers a job as changed, so that `flush` writes it back."""
        if job.seq in self._shared:
            self._own(job)
        self._taken[job.seq] = job

    def _own(self, job: JobRecord) -> None:
        """Loads a job again, with a lock of its own, so that changes of other transactions are not overwritten."""
        self._shared.discard(job.seq)
        for fresh in load(self._tx, [job.seq]):
            for name in job.__struct_fields__:
                setattr(job, name, getattr(fresh, name))

    def note_dependants(self, parents: Sequence[JobRecord]) -> None:
        for job in parents:
            job.flags |= HAS_DEPENDANTS
        unwritten = {job.seq for job in self._new}
        stored = [job.seq for job in parents if job.seq not in unwritten]
        if stored:
            self._tx.run(self._tx.sql.note_dependants, (msgspec.json.encode(stored).decode(),))

    def flush(self) -> None:
        """Writes the new jobs and then all changed ones."""
        new, self._new = self._new, []
        if new:
            records.insert(self._tx, self._lanes, new)
        taken, self._taken = self._taken, {}
        records.save(self._tx, list(taken.values()))

    def _asked(self, sql: str, *values: str | int, shared: bool = False) -> list[JobRecord]:
        return self.load(_ints.decode(self._tx.value(sql, values)), shared=shared)


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
