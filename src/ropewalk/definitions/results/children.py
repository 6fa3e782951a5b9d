"""The jobs that a running attempt queues under its own job: their ids, and what they inherit."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropewalk.definitions.job import AttemptKey, Job
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.errors import InvalidInput


def child_of(parent: JobRecord, child: NewJob) -> NewJob:
    """The child with what it inherits: the group, and the workflow, correlation id and trace unless it has its own.

    Raises InvalidInput if the child has another tenant.
    """
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
    """The ids under which one attempt queues jobs: each call gets a child of its own, also from the same Job object.

    A Job that was built outside of the attempt, such as a constant of a module, may be queued by many parents, in many
    processes, and the same Job may be queued several times in one attempt. With the Job's own id, all of these would be
    one job.
    """

    def __init__(self, attempt: AttemptKey) -> None:
        self._attempt = attempt
        self._child_of: dict[str, str] = {}
        """The id of the first child that this attempt made of a Job, by the id of the Job."""

    def child(self, job: Job[Any, Any]) -> Job[Any, Any]:
        """The job that is queued when this Job is queued now.

        It keeps its id if the user chose it, or if the Job was built in this attempt and is queued for the first time.
        Otherwise it gets a new id.
        """
        if job.chosen_id:
            return job
        first = job.id not in self._child_of
        child = job if first and job.built_in == self._attempt else job.again()
        self._child_of.setdefault(job.id, child.id)
        return child

    def with_dependencies(self, new: NewJob) -> NewJob:
        """The job, which waits for the child where its `depends_on` names a Job of which this attempt made a child."""
        gate = new.gate
        if gate is None or not self._child_of:
            return new
        parents = tuple(structs.replace(each, id=self._child_of.get(each.id, each.id)) for each in gate.parents)
        return structs.replace(new, gate=structs.replace(gate, parents=parents))
