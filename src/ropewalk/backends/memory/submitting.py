"""Accepting jobs. A draft is judged whole before anything is written: a submission comes in entirely or not at all."""

from __future__ import annotations

from msgspec import structs

from ropewalk.backends.memory.keys import KeyName
from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.domain import transition
from ropewalk.domain.idempotency import (
    KeyRecord,
    Verdict,
    id_taken,
    input_hash,
    judge_id,
    judge_key,
    key_taken,
    opened,
    spawn_key_taken,
)
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import IdempotencyKey, JobRecord, NewJob, new_record
from ropewalk.domain.lease import loss_reason
from ropewalk.domain.states import Status
from ropewalk.errors import LeaseLost, RopewalkError
from ropewalk.ports.exchange import Accepted, Holder, SkipQueue, Submission, SubmitAnswer


def submit(tables: Tables, submission: Submission, now: Instant) -> SubmitAnswer:
    draft = Draft(tables, now)
    try:
        if submission.under is not None:
            _check_holder(tables, submission.under)
        for new in submission.jobs:
            draft.add(new)
    except RopewalkError as refusal:
        return refusal.with_traceback(None)
    if submission.skip_queue is not None:
        draft.lease(submission.skip_queue)
    draft.write()
    return [Accepted.of(_seen(job), now, duplicate=duplicate) for job, duplicate in draft.answers]


class Draft:
    """A submission as it would be stored. What is in it already counts like what is in the tables."""

    def __init__(self, tables: Tables, now: Instant) -> None:
        self.answers: list[tuple[JobRecord, bool]] = []
        """(job, whether it was there before), one per submitted job"""
        self._tables = tables
        self._now = now
        self._fresh: dict[tuple[str, str], JobRecord] = {}
        self._spawned: dict[tuple[str, str, str], JobRecord] = {}
        self._keys: dict[KeyName, KeyRecord] = {}

    def add(self, new: NewJob) -> None:
        held = self._same_id(new)
        if held is None and new.spawn_key is not None:
            held = self._same_spawn(new, new.spawn_key)
        if held is None and new.key is not None:
            held = self._same_key(new, new.key)
        if held is not None:
            self.answers.append((held, True))
            return
        job = new_record(new, seq=0, now=self._now)
        if job.tags:
            job.tags = dict(job.tags)
        self._fresh[job.tenant, job.id] = job
        if job.parent_id is not None and job.spawn_key is not None:
            self._spawned[job.tenant, job.parent_id, job.spawn_key] = job
        self.answers.append((job, False))

    def lease(self, skip: SkipQueue) -> None:
        """Hand the only job to its submitter at once, unless something stands in the way."""
        if len(self.answers) != 1 or not self._fresh:
            return
        [(job, _)] = self.answers
        paused = (job.tenant, job.queue) in self._tables.paused
        in_time = job.deadline is None or job.deadline > self._now
        if job.ready_at(self._now) and in_time and not paused:
            transition.claim(
                job,
                owner=skip.owner,
                ticket=skip.ticket,
                epoch=self._tables.epoch,
                lease_us=skip.lease_us,
                now=self._now,
            )

    def write(self) -> None:
        for record in self._keys.values():
            self._tables.keys.put(record)
        for job in self._fresh.values():
            self._tables.insert(job, self._now)

    def _find(self, tenant: str, job_id: str) -> JobRecord | None:
        return self._fresh.get((tenant, job_id)) or self._tables.find(tenant, job_id)

    def _same_id(self, new: NewJob) -> JobRecord | None:
        held = self._find(new.tenant, new.id)
        if held is not None and judge_id(held, new) is Verdict.CONFLICT:
            raise id_taken(held, new)
        return held

    def _same_spawn(self, new: NewJob, key: str) -> JobRecord | None:
        if new.parent_id is None:
            return None
        name = (new.tenant, new.parent_id, key)
        held = self._spawned.get(name) or self._tables.spawned.get(name)
        if held is not None and judge_id(held, new) is Verdict.CONFLICT:
            raise spawn_key_taken(held, new)
        return held

    def _same_key(self, new: NewJob, key: IdempotencyKey) -> JobRecord | None:
        name = (new.tenant, new.type, key.key)
        hashed = input_hash(new.input)
        held = self._keys.get(name) or self._tables.keys.find(name)
        verdict = judge_key(held, key, hashed, self._now)
        if held is None or verdict is Verdict.FREE:
            self._keys[name] = opened(new, key, hashed, self._now)
            return None
        if verdict is Verdict.CONFLICT:
            raise key_taken(held)
        self._keys[name] = structs.replace(held, keep_us=max(held.keep_us, key.window_us))
        job = self._find(new.tenant, held.job_id)
        assert job is not None, f"key {key.key!r} outlived its job {held.job_id}"
        return job


def _check_holder(tables: Tables, under: Holder) -> None:
    lost = loss_reason(tables.jobs.get(under.seq), under.fence, under.owner)
    if lost is not None:
        raise LeaseLost(f"this attempt no longer holds its job ({lost}): nothing was spawned", reason=lost)


def _seen(job: JobRecord) -> JobRecord:
    """What leaves the store is a copy; of a job that was not leased only facts leave it."""
    return copied(job) if job.status is Status.RUNNING else job
