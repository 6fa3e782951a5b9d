"""The verbs of workflows: groups are cancelled, awaited and read, orphan groups are taken, signals are sent, and steps
are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from msgspec import structs

from ropewalk.backends.memory import maintenance
from ropewalk.backends.memory.tables import Tables
from ropewalk.backends.memory.unit_of_work import MemoryUnitOfWork
from ropewalk.backends.workflow.scopes import scope_of
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow.completion import SIGNAL_KNOWN_FOR, StepRecord
from ropewalk.domain.workflow.scope import ORPHANS_RECORDED_FOR, ORPHANS_RENEWED_AFTER, Scope, ScopeChange, cancel
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.workflows import GroupContribution, GroupRecord, OrphanRecord, SignalAnswer, StepAnswer


def cancel_group(tables: Tables, tenant: str, group_id: str, *, reason: str | None, force: bool, now: Instant) -> bool:
    root = _open_root(tables, tenant, group_id, now)
    scopes = tables.groups.of_group(tenant, group_id)
    for scope in scopes:
        cancel(scope, CancelRequest(reason=reason, force=force, at=now))
    return bool(scopes) or root is not None


def await_group(tables: Tables, tenant: str, group_id: str, span_us: Span, now: Instant) -> None:
    _open_root(tables, tenant, group_id, now)
    scope = _root_scope(tables, tenant, group_id)
    if scope is not None:
        scope.awaited_until = max(scope.awaited_until or 0, now + span_us)


def take_orphans(tables: Tables, limit: int, hide_us: Span, now: Instant) -> list[OrphanRecord]:
    until = now + ORPHANS_RECORDED_FOR
    if tables.groups.orphans_recorded_until < until - ORPHANS_RENEWED_AFTER:
        tables.groups.orphans_recorded_until = until
    # An orphan group that is hidden for longer than possible was taken or closed before the clock was set back.
    due = (
        unreported
        for unreported in tables.groups.orphans.values()
        if not now < unreported.hidden_until <= now + hide_us
    )
    taken = nsmallest(limit, due, key=lambda each: (each.orphan.closed_at, each.orphan.id))
    for unreported in taken:
        unreported.hidden_until = now + hide_us
    return [unreported.orphan for unreported in taken]


def groups(tables: Tables, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
    found: dict[str, GroupRecord] = {}
    for each in ids:
        root, scope = tables.find(tenant, each), _root_scope(tables, tenant, each)
        if root is not None and scope is not None:
            found[each] = _record(root, scope, tables.groups.of_group(tenant, each))
    return found


def contributions(tables: Tables, tenant: str, group_id: str) -> list[GroupContribution]:
    scope = _root_scope(tables, tenant, group_id)
    kept = () if scope is None else tables.groups.contributions.get(scope.id, ())
    return [GroupContribution(type=each.type, value=each.value) for each in kept]


def _open_root(tables: Tables, tenant: str, group_id: str, now: Instant) -> JobRecord | None:
    """Returns the root of a group. A root that has queued nothing yet gets its scope, so that the group can be
    marked."""
    root = tables.find(tenant, group_id)
    if root is not None and not root.terminal and root.scope_id is None:
        unit_of_work = MemoryUnitOfWork(tables, now)
        scope_of(unit_of_work, root)
        unit_of_work.flush()
    return root


def _root_scope(tables: Tables, tenant: str, group_id: str) -> Scope | None:
    root = tables.find(tenant, group_id)
    return None if root is None or root.scope_id is not None else tables.groups.scopes.get(root.seq)


def _record(root: JobRecord, kept: Scope, scopes: Sequence[Scope]) -> GroupRecord:
    """Returns a group. Every scope counts its members, so only the root is counted in addition."""
    total = ScopeChange(scope=kept.id)
    if root.terminal:
        total.count(root.status)
    for scope in scopes:
        total.completed += scope.completed
        total.failed += scope.failed
        total.cancelled += scope.cancelled
    members = sum(scope.members for scope in scopes)
    return GroupRecord(
        id=kept.group_id,
        generation=kept.generation,
        open=members + 1 - total.completed - total.failed - total.cancelled,
        completed=total.completed,
        failed=total.failed,
        cancelled=total.cancelled,
        closed_at=kept.closed_at,
        cancelled_by=kept.cancel,
        value=kept.value,
    )


def signal(
    tables: Tables, tenant: str, job_id: str, name: str, value: bytes | None, *, now: Instant, once: str | None
) -> SignalAnswer:
    """Sends a signal to a job. A signal with the key `once` is stored only once."""
    job = tables.find(tenant, job_id)
    if job is None:
        return SignalAnswer.NOT_FOUND
    if job.terminal:
        sent_before = once is not None and maintenance.is_taken_once(tables, tenant, once, now)
        return SignalAnswer.DUPLICATE if sent_before else SignalAnswer.ALREADY_COMPLETE
    if once is not None and not maintenance.once(tables, tenant, once, SIGNAL_KNOWN_FOR, now):
        return SignalAnswer.DUPLICATE
    tables.steps.add_signal(job.seq, name, value)
    unit_of_work = MemoryUnitOfWork(tables, now)
    unit_of_work.take(job)
    delivered = gate.signalled(job, name, now)
    unit_of_work.flush()
    return SignalAnswer.DELIVERED if delivered else SignalAnswer.KEPT


def record_step(tables: Tables, holder: Holder, step: StepRecord) -> StepAnswer:
    lost = _loss(tables, holder)
    if lost is not None:
        return StepAnswer(lost=lost)
    held = tables.steps.at(holder.seq, step.position)
    if held is None or not held.finished:
        _keep(tables, holder, step)
    return StepAnswer()


def take_signal(tables: Tables, holder: Holder, step: StepRecord, name: str) -> StepAnswer:
    lost = _loss(tables, holder)
    if lost is not None:
        return StepAnswer(lost=lost)
    held = tables.steps.at(holder.seq, step.position)
    if held is not None and held.finished:
        return StepAnswer(taken=held)  # The first answer was lost. The wait has taken its signal and takes no other.
    if not tables.steps.has_signal(holder.seq, name):
        return StepAnswer()
    taken = structs.replace(step, value=tables.steps.take_signal(holder.seq, name), finished=True)
    _keep(tables, holder, taken)
    return StepAnswer(taken=taken)


def _loss(tables: Tables, holder: Holder) -> LossReason | None:
    return loss_reason(tables.jobs.get(holder.seq), holder.fence, holder.owner)


def _keep(tables: Tables, holder: Holder, step: StepRecord) -> None:
    tables.steps.put(holder.seq, step)
    tables.jobs[holder.seq].flags |= STEPPED
