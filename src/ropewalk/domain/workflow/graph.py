"""The order in which jobs of one submission are written when they depend on one another, or the circle in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import InvalidInput


def in_order(jobs: Sequence[NewJob]) -> list[NewJob]:
    """Returns the jobs with every parent before its children, and otherwise in the order of the submission.

    A job that repeats the id of an earlier one comes last. Raises InvalidInput, which names the jobs of a circle.
    """
    if all(job.gate is None for job in jobs):
        return list(jobs)
    all_ids: dict[tuple[str, str], NewJob] = {}
    repeated = [job for job in jobs if all_ids.setdefault((job.tenant, job.id), job) is not job]
    order: list[NewJob] = []
    placed: set[tuple[str, str]] = set()
    for job in jobs:
        _place(job, all_ids, placed, order)
    return [*order, *repeated]


def _place(
    first: NewJob, all_ids: Mapping[tuple[str, str], NewJob], placed: set[tuple[str, str]], order: list[NewJob]
) -> None:
    """Appends a job to `order` behind all of its parents.

    The search is depth first and uses no recursion, because a submission may be a chain of 10 000 dependencies: it is
    refused later, by a rule and not by the depth of Python's stack.
    """
    path: dict[tuple[str, str], list[NewJob]] = {}
    stack = [first]
    while stack:
        job = stack[-1]
        key = (job.tenant, job.id)
        if key in placed:
            stack.pop()
            continue
        if key not in path:
            path[key] = _parents(job, all_ids)
        waiting = path[key]
        while waiting:
            parent = waiting.pop()
            parent_key = (parent.tenant, parent.id)
            if parent_key in path:
                raise _circle(list(path), parent_key)
            if parent_key not in placed:
                stack.append(parent)
                break
        else:
            stack.pop()
            del path[key]
            placed.add(key)
            order.append(job)


def _parents(job: NewJob, all_ids: Mapping[tuple[str, str], NewJob]) -> list[NewJob]:
    if job.gate is None:
        return []
    found = [all_ids.get((job.tenant, parent.id)) for parent in job.gate.parents]
    return [parent for parent in reversed(found) if parent is not None]


def _circle(path: list[tuple[str, str]], closing: tuple[str, str]) -> InvalidInput:
    circle = [job_id for _, job_id in path[path.index(closing) :]]
    path_shown = " → ".join([*circle, circle[0]])
    return InvalidInput(f"depends_on: these jobs wait for one another: {path_shown}", field="depends_on")
