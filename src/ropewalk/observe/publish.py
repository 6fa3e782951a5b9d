"""After each commit, `publish` sends events about changed jobs and closed groups, counts metrics, and wakes waiters and
workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import SETTLING, Move, Status
from ropewalk.domain.workflow.completion import compensation
from ropewalk.observe.events import EventHub, Queued
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.consequences import ClosedGroup, Consequences, Moved
from ropewalk.ports.store.core import Store

HINT_IDS_MAX: Final = 200
"""A hint names this many ended jobs at most; if more ended, it says that there are many."""
NO_CONSEQUENCES: Final = Consequences()

_COMPLETE: Final = Move.COMPLETE
_WAITING: Final = Status.WAITING


class Change(Struct, frozen=True, gc=False):
    """A change of one job in a commit: the job as it is now, and the move that was made."""

    job: JobRecord
    move: Move
    error: ErrorInfo | None
    attempt_error: ErrorInfo | None = None
    """The error of the attempt, if the job ended for another reason, such as its deadline."""

    @property
    def failed_with(self) -> ErrorInfo | None:
        """The error of the last attempt, if it needs an event of its own beside the event about the end of the job;
        None if no attempt failed or the move itself says it."""
        return self.error if self.move is Move.BURY else self.attempt_error


def publish(
    changes: Iterable[Change],
    *,
    store: Store,
    events: EventHub,
    runtime: Runtime,
    consequences: Consequences = NO_CONSEQUENCES,
    queued: Sequence[NewJob] = (),
    freed: Iterable[str] = (),
    control: bool = False,
) -> None:
    """Sends events, counts metrics, and wakes waiters and workers after a commit.

    `consequences` are the changes that followed in the same transaction, and `queued` are the jobs that were written in
    it. `freed` are the queues in which a limit may now admit jobs. `control` has all workers renew their leases at
    once, so that they learn of cancellations.
    """
    finished: list[str] = []
    ready: set[str] = {*freed, *(new.queue for new in queued)}
    all_changes = [*changes, *map(change_of, consequences.moved)]
    fresh = [(new, new.group_id or new.id) for new in queued]
    for each in all_changes:
        job, move = each.job, each.move
        if move is _COMPLETE:  # This is nearly always the case, and nothing else has to be checked then.
            finished.append(job.id)
        elif SETTLING.get(move) is _WAITING:
            if not job.unmet:
                ready.add(job.queue)
        else:
            finished.append(job.id)
            if job.on_failure is not None:
                ready.add(job.on_failure.queue)
                fresh += _compensations(job)
    if events.meter is not None:
        events.meter.moved(all_changes)
    events.count_queued(fresh)
    events.emit_changes(all_changes, runtime.now())
    events.emit_queued(fresh)
    ready.update(consequences.ready)
    finished.extend(group.id for group in consequences.closed)
    for passed in consequences.passed_over:
        events.report(passed.error, passed.name)
    if consequences.closed and events.has_listeners:
        runtime.spawn(_emit_closed(consequences.closed, store, events), name="ropewalk-group-closed")
    if finished or ready or control:
        many = len(finished) > HINT_IDS_MAX
        hint = Hint(ready=tuple(ready), finished=tuple(finished[:HINT_IDS_MAX]), many=many, control=control)
        store.notifier.publish(hint)


def _compensations(job: JobRecord) -> list[Queued]:
    """Returns the compensation that the store wrote together with the failure of a job. It is derived from the job."""
    if job.status not in (Status.FAILED, Status.DEAD_LETTER):
        return []
    follow_up = compensation(job)
    assert follow_up is not None, "a job with on_failure that failed has a compensation"
    return [(follow_up, follow_up.group_id or follow_up.id)]


def change_of(moved: Moved) -> Change:
    """Returns the change for a job that the store moved as a consequence."""
    return Change(moved.job, moved.move, moved.job.error)


async def _emit_closed(closed: Sequence[ClosedGroup], store: Store, events: EventHub) -> None:
    """Sends the events about closed groups. Each is about the root of its group, which is read from the store."""
    try:
        for group in closed:
            root = (await store.get(group.tenant, [group.id])).jobs.get(group.id)
            if root is not None:
                events.emit_about(root, "group_closed")
    except Exception as error:
        events.report(error, "group_closed")
