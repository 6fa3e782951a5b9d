"""Accepts jobs: each submission is judged before anything of it is written, so it is accepted completely or not at
all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from ropewalk.backends.workflow import parents
from ropewalk.backends.workflow.parents import Parent
from ropewalk.backends.workflow.scopes import enter, root_of, scope_of
from ropewalk.backends.workflow.unit_of_work import UnitOfWork
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS
from ropewalk.domain.jobs.idempotency import (
    KeyMatch,
    KeyRecord,
    id_taken,
    input_hash,
    judge_id,
    judge_key,
    key_taken,
    opened_key,
    spawn_key_taken,
)
from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.limits.quota import Admission
from ropewalk.domain.workflow import gate as pending
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.graph import in_order
from ropewalk.domain.workflow.scope import Scope


class Drafted(Struct):
    """A job as it would be stored."""

    new: NewJob
    job: JobRecord
    parents: list[Parent]


class Ended(Struct, frozen=True):
    """A job that ended in this transaction, or one whose gate was ignored, so that it goes on."""

    job: JobRecord
    effects: Effects


class Draft:
    """A submission as it would be stored. Its jobs already count like stored ones for one another.

    `owner` is the job in whose scope they are written; None for the roots of new groups.
    """

    def __init__(self, unit_of_work: UnitOfWork, jobs: Sequence[NewJob], owner: JobRecord | None = None) -> None:
        self._unit_of_work = unit_of_work
        self._jobs = jobs
        self._owner = owner
        self._known: dict[str, dict[str, JobRecord]] = {}
        """By tenant and id, the stored jobs with a submitted id, and those that stand for a submitted one."""
        self._children: dict[tuple[str, str, str], JobRecord] = {}
        """The children that exist, by (tenant, parent id, spawn key)."""
        self._keys: dict[tuple[str, str, str], KeyRecord] = {}
        """The idempotency keys to be written, by (tenant, type, key)."""
        self._fresh: dict[tuple[str, str], Drafted] = {}
        """The new jobs, by (tenant, id)."""
        self._fresh_ids: set[str] = set()

    def judge(self, admission: Admission | None = None) -> None:
        """Raises the error that refuses the submission: Conflict, SpawnMismatch, NotFound, InvalidInput, LimitExceeded,
        or, if it comes from outside, QuotaExceeded."""
        self._look_up()
        for new in in_order(self._jobs):
            self._add(new)
        if admission is not None:
            fresh = [each.new for each in self._fresh.values()]
            let_in = admission.admit if self._owner is None else admission.join
            let_in(fresh)

    def write(self) -> list[Ended]:
        """Writes the new jobs, which nothing refuses any more. Returns those that end at once, because their gate can
        no longer open or their group is cancelled."""
        unit_of_work, drafted = self._unit_of_work, list(self._fresh.values())
        jobs = [each.job for each in drafted]
        for held in self._keys.values():
            unit_of_work.put_key(held)
        if not jobs:
            return []
        unit_of_work.number(jobs)
        scope = None
        if self._owner is not None:
            scope = scope_of(unit_of_work, self._owner)
            enter(scope, jobs)
        unit_of_work.insert(jobs)
        gated = [each for each in drafted if each.parents]
        self._write_edges(gated)
        # In this order no job ends twice: for a job that is cancelled already, the parents that ended are only counted.
        return [*self._cancel_in_group(jobs, scope), *self._end_by_parents(gated)]

    def answers(self) -> list[tuple[JobRecord, bool]]:
        """Returns each submitted job, in order, and whether it was there before."""
        seen: set[tuple[str, str]] = set()
        answers: list[tuple[JobRecord, bool]] = []
        for new in self._jobs:
            key = (new.tenant, new.id)
            answers.append((self._known[new.tenant][new.id], key not in self._fresh or key in seen))
            seen.add(key)
        return answers

    def _look_up(self) -> None:
        ids: defaultdict[str, list[str]] = defaultdict(list)
        spawned: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for new in self._jobs:
            ids[new.tenant].append(new.id)
            if new.parent_id is not None and new.spawn_key is not None:
                spawned[new.tenant, new.parent_id].append(new.spawn_key)
        for tenant, wanted in ids.items():
            self._known[tenant] = dict(self._unit_of_work.find_shared(tenant, wanted))
        for (tenant, parent_id), keys in spawned.items():
            for key, job in self._unit_of_work.spawned(tenant, parent_id, keys).items():
                self._children[tenant, parent_id, key] = job

    def _add(self, new: NewJob) -> None:
        known = self._known[new.tenant]
        held = self._same_id(new, known) or self._same_spawn(new) or self._same_key(new, new.key)
        if held is not None:
            known[new.id] = held
            return
        job = new_record(new, seq=0, now=self._unit_of_work.now)
        if job.tags:
            job.tags = dict(job.tags)
        drafted = Drafted(new, job, [])
        if new.gate is not None:
            drafted.parents = self._bind(new, job, known)
        self._fresh[new.tenant, new.id] = drafted
        self._fresh_ids.add(new.id)
        known[new.id] = job
        if new.parent_id is not None and new.spawn_key is not None:
            self._children[new.tenant, new.parent_id, new.spawn_key] = job

    def _bind(self, new: NewJob, job: JobRecord, known: Mapping[str, JobRecord]) -> list[Parent]:
        gate = new.gate
        assert gate is not None
        found = parents.found(self._unit_of_work, gate, new.tenant, known)
        if self._owner is not None:
            root = root_of(self._unit_of_work, self._owner)
            parents.check_inside(self._unit_of_work, found, self._owner.seq, root, self._fresh_ids)
        depth = parents.depth_below(found, gate.depth_max)
        inherited = parents.highest_priority(found) if new.inherits_priority else None
        pending.bind(job, gate, total=len(found), depth=depth, priority=inherited, now=self._unit_of_work.now)
        return found

    def _same_id(self, new: NewJob, known: Mapping[str, JobRecord]) -> JobRecord | None:
        held = known.get(new.id)
        if held is not None and judge_id(held, new) is KeyMatch.CONFLICT:
            raise id_taken(held, new)
        return held

    def _same_spawn(self, new: NewJob) -> JobRecord | None:
        if new.parent_id is None or new.spawn_key is None:
            return None
        held = self._children.get((new.tenant, new.parent_id, new.spawn_key))
        if held is not None and judge_id(held, new) is KeyMatch.CONFLICT:
            raise spawn_key_taken(held, new)
        return held

    def _same_key(self, new: NewJob, key: IdempotencyKey | None) -> JobRecord | None:
        if key is None:
            return None
        name = (new.tenant, new.type, key.key)
        hashed = input_hash(new.input)
        held = self._keys.get(name) or self._unit_of_work.find_key(*name)
        match = judge_key(held, key, hashed, self._unit_of_work.now)
        if held is None or match is KeyMatch.FREE:
            self._keys[name] = opened_key(new, key, hashed, self._unit_of_work.now)
            return None
        if match is KeyMatch.CONFLICT:
            raise key_taken(held)
        self._keys[name] = structs.replace(held, keep_us=max(held.keep_us, key.window_us))
        fresh = self._fresh.get((new.tenant, held.job_id))
        job = (
            fresh.job
            if fresh is not None
            else self._unit_of_work.find_shared(new.tenant, [held.job_id]).get(held.job_id)
        )
        assert job is not None, f"key {key.key!r} outlived its job {held.job_id}"
        return job

    def _write_edges(self, gated: Sequence[Drafted]) -> None:
        """Writes the edges of jobs with parents, and flags the parents."""
        edges = [parent.edge(each.job.seq, position) for each in gated for position, parent in enumerate(each.parents)]
        self._unit_of_work.add_edges(edges)
        jobs = {job.seq: job for each in gated for parent in each.parents if (job := parent.job) is not None}
        self._unit_of_work.note_dependants([job for job in jobs.values() if not job.flags & HAS_DEPENDANTS])

    def _end_by_parents(self, gated: Sequence[Drafted]) -> list[Ended]:
        """Applies parents that had ended before: they may open the gate of a new job, or show that it can no longer
        open."""
        ended: list[Ended] = []
        for each in gated:
            ends = parents.ends(each.parents)
            if ends:
                self._unit_of_work.take(each.job)
                effects = pending.parents_ended(each.job, ends, self._unit_of_work.now)
                if effects is not None:
                    ended.append(Ended(each.job, effects))
        return ended

    def _cancel_in_group(self, jobs: Sequence[JobRecord], scope: Scope | None) -> list[Ended]:
        """Cancels new jobs in a cancelled group."""
        if scope is None or scope.cancel is None:
            return []
        ended: list[Ended] = []
        for job in jobs:
            if job.terminal or not scopes.cancels(scope, job):
                continue
            self._unit_of_work.take(job)
            _, event = operations.cancel(job, reason=scope.cancel.reason, force=False, now=self._unit_of_work.now)
            ended.append(Ended(job, Effects(Move.CANCEL, event=event)))
        return ended
