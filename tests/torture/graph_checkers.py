"""Pure judges over jobs that hang together: what was planned, what the store says, what handlers saw.

Each returns what is wrong. Lines of the history stand in the order they happened, whichever process wrote them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ropewalk.domain.jobs.states import Status
from ropewalk.ports.store.reading import StoredHistory
from ropewalk.ports.store.workflows import GroupRecord
from tests.torture.checkers import Trails
from tests.torture.flows import leaf, wrap_up
from tests.torture.history import Happening
from tests.torture.plan import Parent, Plan

Groups = Mapping[str, GroupRecord]
"""by the id of the root; those with more jobs than their root"""


def unplanned(plan: Plan, trails: Trails, happened: Sequence[Happening]) -> list[str]:
    """In the store or started, though neither submitted nor queued under, nor compensating, what was."""
    known = set(plan.ids)
    born = {
        job_id
        for job_id, trail in trails.items()
        if (trail.job.origin is not None and trail.job.origin.id in known) or trail.job.parent_id in plan.children
    }
    seen = {*trails, *(each.job for each in happened if each.kind == "started" and each.job is not None)}
    return sorted(seen - known - born)


def miscounted(plan: Plan, trails: Trails) -> list[str]:
    """More or fewer children than their handler asked for."""
    found = Counter(trail.job.parent_id for trail in trails.values() if trail.job.origin is None)
    return [f"{root}: {found[root]} of {wanted}" for root, wanted in plan.children.items() if found[root] != wanted]


def started_early(plan: Plan, trails: Trails, happened: Sequence[Happening]) -> list[str]:
    """Started before everything it waits for had come to its end."""
    ends = _ends(trails, happened)
    first: dict[str, int] = {}
    for place, each in enumerate(happened):
        if each.kind == "started" and each.job is not None:
            first.setdefault(each.job, place)
    return [
        f"{job_id} started before {parent} ended"
        for job_id, parents in _all_needs(plan, trails).items()
        for parent in parents
        if job_id in first and (parent not in ends or first[job_id] < ends[parent])
    ]


def doomed_but_ran(plan: Plan, trails: Trails, happened: Sequence[Happening]) -> list[str]:
    """What it waited for had failed, and it started all the same, or did not end as failed."""
    ran = {each.job for each in happened if each.kind == "started"}
    return sorted(
        job_id
        for job_id in plan.doomed
        if job_id in ran or (job_id in trails and trails[job_id].job.status is not Status.FAILED)
    )


def not_closed_once(groups: Groups, trails: Trails, happened: Sequence[Happening]) -> list[str]:
    """Open though all its jobs ended, closed too early, opened again, told as closed twice, or miscounted."""
    members: dict[str, list[str]] = defaultdict(list)
    for job_id, trail in trails.items():
        members[trail.job.group_id or job_id].append(job_id)
    wrong = [f"{root}: no group" for root, jobs in members.items() if len(jobs) > 1 and root not in groups]
    for root, group in groups.items():
        fault = _group_fault(group, [trails[job_id] for job_id in members[root]])
        wrong += [] if fault is None else [f"{root}: {fault}"]
    return wrong + _told_wrong(members, _ends(trails, happened), happened)


def wrong_sums(plan: Plan, groups: Groups) -> list[str]:
    """A contribution is missing, or counted twice."""
    values = {root: msgspec.json.decode(group.value.value or b"null") for root, group in groups.items()}
    return [
        f"{root}: {values.get(root)}, not {wanted}" for root, wanted in plan.sums.items() if values.get(root) != wanted
    ]


def _all_needs(plan: Plan, trails: Trails) -> dict[str, list[str]]:
    """By dependant the jobs it waits for; those that wrap up a fan wait for its leaves."""
    groups: dict[str | None, list[str]] = defaultdict(list)
    leaves: dict[str | None, list[str]] = defaultdict(list)
    for job_id, trail in trails.items():
        groups[trail.job.group_id or job_id].append(job_id)
        if trail.job.type == leaf.name:
            leaves[trail.job.parent_id].append(job_id)
    needs = {job_id: _spelled_out(parents, groups) for job_id, parents in plan.needs.items()}
    wrapping = {job_id: trail.job.parent_id for job_id, trail in trails.items() if trail.job.type == wrap_up.name}
    return needs | {job_id: leaves[root] for job_id, root in wrapping.items()}


def _spelled_out(parents: Iterable[Parent], groups: Mapping[str | None, list[str]]) -> list[str]:
    return [job_id for each in parents for job_id in (groups[each.id] if each.whole_group else [each.id])]


def _ends(trails: Trails, happened: Sequence[Happening]) -> dict[str, int]:
    """Where in the history the handler of each job came to the end that counted."""
    return {
        each.job: place
        for place, each in enumerate(happened)
        if each.job is not None and each.job in trails
        if each.kind == _last_act(trails[each.job]) and each.fence == trails[each.job].job.fence
    }


def _told_wrong(
    members: Mapping[str, Sequence[str]], ends: Mapping[str, int], happened: Sequence[Happening]
) -> list[str]:
    told = Counter(each.job for each in happened if each.kind == "closed")
    wrong = [f"{root}: told as closed {times}×" for root, times in told.items() if times > 1]
    for place, each in enumerate(happened):
        if each.kind == "closed" and each.job is not None:
            late = [job_id for job_id in members[each.job] if ends.get(job_id, 0) > place]
            wrong += [f"{each.job}: told as closed before {job_id} ended" for job_id in late]
    return wrong


def _last_act(trail: StoredHistory) -> str:
    """The last a handler writes: those that fail for good come to no effect."""
    return "effect" if trail.job.status is Status.COMPLETED else "started"


def _group_fault(group: GroupRecord, members: Sequence[StoredHistory]) -> str | None:
    ends = Counter(trail.job.status for trail in members)
    failed = ends[Status.FAILED] + ends[Status.DEAD_LETTER]
    counted = (group.open, group.completed, group.failed, group.cancelled)
    if counted != (0, ends[Status.COMPLETED], failed, ends[Status.CANCELLED]):
        return f"open, completed, failed, cancelled are {counted}, its jobs {dict(ends)}"
    if group.generation != 1:
        return f"generation {group.generation}"
    return "not closed" if group.closed_at is None else None
