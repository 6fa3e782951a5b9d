"""What a job hands on to those queued under it: its group, its workflow, its tenant."""

from __future__ import annotations

from msgspec import structs

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
