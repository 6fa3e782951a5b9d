"""The ids under which an attempt queues jobs: each parent has a child of its own, whichever Job object it is made from.

A Job that was built outside the attempt, such as a constant of a module, may be queued by many parents, in many
processes; and the same Job may be queued several times in one attempt. Its own id would make all of these one job.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropewalk.definitions.job import AttemptKey, Job
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.errors import InvalidInput


def child_of(parent: JobRecord, child: NewJob) -> NewJob:
    """What the child says itself comes first; another tenant's child it cannot be."""
    if child.tenant != parent.tenant:
        raise InvalidInput(
            f"a job of tenant {parent.tenant!r} cannot queue one of tenant {child.tenant!r}: leave tenant= out",
            field="tenant",
        )
    return structs.replace(
        child,
        parent_id=parent.id,
        group_id=parent.group_id or parent.id,
        workflow_id=child.workflow_id or parent.workflow_id,
        workflow_type=child.workflow_type or parent.workflow_type,
        correlation_id=child.correlation_id or parent.correlation_id,
        trace=child.trace or parent.trace,
    )


class ChildIds:
    """Those of one attempt."""

    def __init__(self, attempt: AttemptKey) -> None:
        self._attempt = attempt
        self._child_of: dict[str, str] = {}
        """id of a Job object → id of the first job that this attempt made from it"""

    def child(self, job: Job[Any, Any]) -> Job[Any, Any]:
        """The job as it is queued now. It keeps its id where its user chose the id, and where it was built in this
        attempt and is queued for the first time; otherwise it gets a new one."""
        if job.chosen_id:
            return job
        first = job.id not in self._child_of
        child = job if first and job.built_in == self._attempt else job.again()
        self._child_of.setdefault(job.id, child.id)
        return child

    def with_dependencies(self, new: NewJob) -> NewJob:
        """The job, where its `depends_on` names a Job of which this attempt made a child: it waits for that child."""
        gate = new.gate
        if gate is None or not self._child_of:
            return new
        parents = tuple(structs.replace(each, id=self._child_of.get(each.id, each.id)) for each in gate.parents)
        return structs.replace(new, gate=structs.replace(gate, parents=parents))
