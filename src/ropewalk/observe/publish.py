"""After a commit: tell hooks what happened to jobs and groups, and wake whoever waits for them or could run them."""

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
NO_CONSEQUENCES: Final = Consequences()

_COMPLETE: Final = Move.COMPLETE
_WAITING: Final = Status.WAITING


class Change(Struct, frozen=True, gc=False):
    job: JobRecord
    move: Move
    error: ErrorInfo | None
    attempt_error: ErrorInfo | None = None
    """What the attempt failed with, where the job ended because of something else, such as its deadline."""

    @property
    def failed_with(self) -> ErrorInfo | None:
        """The error of the attempt after which a job became a dead letter. None: no attempt failed, or the move itself
        says so."""
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
    """Tell hooks, the meter and other workers what happened.

    `consequences` followed from the changes, and `queued` was written with it. `freed` are queues in which a limit may
    leave room now; `control` also wakes holders.
    """
    finished: list[str] = []
    ready: set[str] = {*freed, *(new.queue for new in queued)}
    all_changes = [*changes, *map(change_of, consequences.moved)]
    fresh = [(new, new.group_id or new.id) for new in queued]
    for each in all_changes:
        job, move = each.job, each.move
        if move is _COMPLETE:  # nearly always, and then there is nothing more to ask
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
    """The store wrote it with the failure; what it is follows from the job."""
    if job.status not in (Status.FAILED, Status.DEAD_LETTER):
        return []
    follow_up = compensation(job)
    assert follow_up is not None, "asked only where there is one"
    return [(follow_up, follow_up.group_id or follow_up.id)]


def change_of(moved: Moved) -> Change:
    return Change(moved.job, moved.move, moved.job.error)


async def _emit_closed(closed: Sequence[ClosedGroup], store: Store, events: EventHub) -> None:
    """The event is about the root: what that is, the store knows."""
    try:
        for group in closed:
            root = (await store.get(group.tenant, [group.id])).jobs.get(group.id)
            if root is not None:
                events.emit_about(root, "group_closed")
    except Exception as error:
        events.report(error, "group_closed")
