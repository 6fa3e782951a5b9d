"""Pure judges over what was submitted, what the store says and what handlers saw. Each returns what is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ropewalk.domain.jobs.history import HistoryEntry, assemble
from ropewalk.domain.jobs.states import SETTLING, Status
from ropewalk.ports.store.reading import StoredHistory
from tests.torture.history import Happening

Trails = Mapping[str, StoredHistory]
"""by job id"""


def lost(submitted: Iterable[str], trails: Trails) -> list[str]:
    """Submitted and not terminal, or not there at all."""
    return [job_id for job_id in submitted if job_id not in trails or not trails[job_id].job.terminal]


def unexpected(submitted: Iterable[str], trails: Trails, happened: Sequence[Happening]) -> list[str]:
    """In the store or started, but neither submitted nor the compensation of something submitted."""
    known = set(submitted)
    born = {job_id for job_id, trail in trails.items() if trail.job.origin is not None and trail.job.origin.id in known}
    seen = {*trails, *(each.job for each in happened if each.job is not None)}
    return sorted(seen - known - born)


def accepted_twice(happened: Sequence[Happening], trails: Trails) -> list[str]:
    """More than one completion of a run was taken: by the workers' own account, or by the history."""
    by_workers = Counter(each.job for each in happened if each.kind == "accepted" and each.job is not None)
    wrong = {job_id for job_id, times in by_workers.items() if times > 1}
    for job_id, trail in trails.items():
        if sum(entry.kind == "complete" for entry in _entries(trail)) > 1:
            wrong.add(job_id)
    return sorted(wrong)


def accepted_late(happened: Sequence[Happening], trails: Trails) -> list[str]:
    """A completion was taken from an attempt that was no longer the current one."""
    accepted = [(each.job, each.attempt) for each in happened if each.kind == "accepted" and each.job is not None]
    return [
        f"{job_id}: attempt {attempt} was accepted, the job is at {trails[job_id].job.attempt}"
        for job_id, attempt in accepted
        if job_id in trails and attempt != trails[job_id].job.attempt
    ]


def illegal(trails: Trails) -> list[str]:
    """Histories with a gap, or in an order no job may live."""
    return [f"{job_id}: {kinds}" for job_id, trail in trails.items() if (kinds := _fault(trail)) is not None]


def leased_twice(happened: Sequence[Happening], trails: Trails) -> list[str]:
    """A fence that started two handlers, or fences that do not rise from attempt to attempt."""
    starts = Counter((each.job, each.fence) for each in happened if each.kind == "started")
    wrong = [f"{job} fence {fence} started {times}×" for (job, fence), times in starts.items() if times > 1]
    for job_id, trail in trails.items():
        fences = [each.fence for each in sorted(trail.attempts, key=lambda each: each.start_rev)]
        if trail.job.status is Status.COMPLETED:
            fences.append(trail.job.fence)
        if any(later <= earlier for earlier, later in pairwise(fences)):
            wrong.append(f"{job_id} fences {fences}")
    return wrong


def completed_without_effect(happened: Sequence[Happening], trails: Trails) -> list[str]:
    """Completed, but no handler came to its end under the fence it completed with."""
    effects: dict[str, set[int]] = defaultdict(set)
    for each in happened:
        if each.kind == "effect" and each.job is not None and each.fence is not None:
            effects[each.job].add(each.fence)
    return [
        job_id
        for job_id, trail in trails.items()
        if trail.job.status is Status.COMPLETED and trail.job.fence not in effects[job_id]
    ]


def over_budget(trails: Trails) -> list[str]:
    """More attempts or crashes than allowed."""
    return [
        f"{job_id}: attempt {job.attempt} of {job.max_attempts}, crashes {job.crashes} of {job.max_crashes}"
        for job_id, job in ((job_id, trail.job) for job_id, trail in trails.items())
        if (job.max_attempts is not None and job.attempt > job.max_attempts) or job.crashes > job.max_crashes
    ]


def uncompensated(trails: Trails) -> list[str]:
    """Failed with a compensation that is not there, or is there more than once."""
    followed = Counter(trail.job.origin.id for trail in trails.values() if trail.job.origin is not None)
    return [
        f"{job_id}: {followed[job_id]} compensations"
        for job_id, trail in trails.items()
        if trail.job.on_failure is not None
        and followed[job_id] != (trail.job.status in (Status.FAILED, Status.DEAD_LETTER))
    ]


def defects(happened: Sequence[Happening]) -> list[str]:
    """Errors in the loops of workers other than a store that cannot be reached, or does not answer in time."""
    said = (each.reason or "" for each in happened if each.kind == "trouble")
    return sorted({reason for reason in said if not reason.startswith(_OUTAGES)})


def refused_writes(happened: Sequence[Happening]) -> int:
    """Late writes the store refused, summed over all processes (each tells its own running count)."""
    latest: dict[int, int] = {}
    for each in happened:
        if each.kind == "refused" and each.count is not None:
            latest[each.pid] = max(each.count, latest.get(each.pid, 0))
    return sum(latest.values())


_OUTAGES = ("StoreUnavailable", "OutcomeUnknown", "TimeoutError in heartbeat")
_ENDS = frozenset(move.value for move, status in SETTLING.items() if status is not Status.WAITING)
_PAUSES = frozenset(move.value for move, status in SETTLING.items() if status is Status.WAITING)


def _fault(trail: StoredHistory) -> str | None:
    entries = _entries(trail)
    kinds = [entry.kind for entry in entries]
    if [entry.rev for entry in entries] != list(range(1, trail.job.rev + 1)):
        return f"revs {[entry.rev for entry in entries]} of {trail.job.rev}: {kinds}"
    allowed = frozenset({"queued"})
    for kind in kinds:
        if kind not in allowed:
            return f"{kind} out of order in {kinds}"
        allowed = _after(kind)
    return None


def _after(kind: str) -> frozenset[str]:
    if kind == "started":
        return _ENDS | _PAUSES
    if kind == "queued":
        return frozenset({"started", "doomed"})
    return frozenset({"started"}) if kind in _PAUSES else frozenset()


def _entries(trail: StoredHistory) -> list[HistoryEntry]:
    return assemble(trail.job, trail.attempts, trail.events)
