"""The verbs of workflows beside settling: people end jobs, signals arrive, groups are cancelled and awaited, and
postponed consequences are continued. The other verbs only read groups and their values, chains and dependencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs

from ropewalk.backends.sql import maintenance, records, steps
from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.graph import edges_of
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.records import Pieces, load
from ropewalk.backends.sql.steps import READ_AT_ONCE_MAX
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.completion import end_from_outside
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.scopes import is_whole_group, scope_of
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import Span
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow.completion import SIGNAL_KNOWN_FOR
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE
from ropewalk.domain.workflow.scope import cancel
from ropewalk.errors import StoreRefused
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.workflows import Dependency, EndAnswer, GroupContribution, GroupRecord, SignalAnswer


def _refuse_group(group: GroupRecord, unread: Sequence[str]) -> None:
    """Refuses a group whose value cannot be read, because it would look like a group without a value."""
    raise StoreRefused(
        f"the stored {', '.join(unread)} of group {group.id} cannot be read: repair its row in table scope"
    )


_ints = msgspec.json.Decoder(list[int])
_tails = Rows("edge", int)
_groups = Rows("scope", GroupRecord, stand_in=_refuse_group)
_kept = msgspec.json.Decoder(list[tuple[int, str, int | None]])


def groups(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
    """Returns those of these groups that have a scope."""
    wanted = msgspec.json.encode(list(dict.fromkeys(ids))).decode()
    return {group.id: group for group in _groups.decode(tx, tx.value(tx.sql.groups, (wanted, tenant)))}


def contributions(tx: Tx, tenant: str, group_id: str) -> list[GroupContribution]:
    """Returns the contributions to a group in the order in which they were folded."""
    root: int | None = tx.value(tx.sql.root_of_group, (group_id, tenant))
    kept: list[GroupContribution] = []
    after = 0
    while root is not None:
        found = tx.row(tx.sql.contributions_of, (root, after, READ_AT_ONCE_MAX))
        assert found is not None
        rows, values = _kept.decode(found[0]), Pieces(found[1] or b"")
        kept += [
            GroupContribution(type=job_type, value=None if size is None else values.take(size))
            for _, job_type, size in rows
        ]
        if len(rows) < READ_AT_ONCE_MAX:
            break
        after = rows[-1][0]
    return kept


def chain(tx: Tx, tenant: str, job_id: str, last: int | None) -> list[JobRecord]:
    """Returns the members of a chain, or its `last` members."""
    job = records.find(tx, tenant, job_id)
    if job is not None and job.chain_id is None:
        return [job]
    chain_id = job_id if job is None else job.chain_id
    limit = -1 if last is None else last  # For SQLite, -1 means all.
    return load(tx, _ints.decode(tx.value(tx.sql.chain_of, (chain_id, tenant, limit)))[::-1])


def dependencies(tx: Tx, seq: int) -> list[Dependency]:
    """Returns what a job waits or waited for."""
    behind = _tails.decode(tx, tx.value(tx.sql.tails_of_edges, (seq,)))
    jobs = {job.seq: job for job in load(tx, list(dict.fromkeys(behind)))}
    edges = edges_of(tx, [seq])
    if len(edges) != len(behind):  # Some edges cannot be read, so the jobs do not belong to the others in order.
        return [Dependency(edge=edge, job=None) for edge in edges]
    found = [(edge, jobs.get(at)) for edge, at in zip(edges, behind, strict=True)]
    roots = [job for edge, job in found if job is not None and is_whole_group(edge, job)]
    held = groups(tx, roots[0].tenant, [root.id for root in roots]) if roots else {}
    kept = {
        group.id: tuple(contributions(tx, roots[0].tenant, group.id))
        for group in held.values()
        if group.value.reducer in KEPT_ONE_BY_ONE
    }
    return [
        Dependency(edge=edge, job=job, group=held[job.id], contributions=kept.get(job.id, ()))
        if job is not None and job.id in held and is_whole_group(edge, job)
        else Dependency(edge=edge, job=job)
        for edge, job in found
    ]


def end(tx: Tx, lanes: LaneBook, tenant: str, job_id: str, asked: EndRequest) -> EndAnswer:
    """Ends a job on behalf of somebody outside."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    job = unit_of_work.find(tenant, [job_id]).get(job_id)
    if job is None:
        return EndAnswer(id=job_id)
    if job.terminal:
        return EndAnswer(id=job_id, state=job.state_at(tx.now))
    if job.status is Status.RUNNING:
        tx.run(tx.sql.bump_control)  # Its worker notices that soon.
    propagation = Propagation(unit_of_work)
    end_from_outside(unit_of_work, propagation, job, asked)
    consequences = propagation.run()
    unit_of_work.flush()
    return EndAnswer(id=job_id, job=job, state=job.state_at(tx.now), consequences=consequences)


def signal(
    tx: Tx, lanes: LaneBook, tenant: str, job_id: str, *, name: str, value: bytes | None, once: str | None
) -> SignalAnswer:
    """Sends a signal to a job. A signal with the key `once` is stored only once."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    job = unit_of_work.find(tenant, [job_id]).get(job_id)
    if job is None:
        return SignalAnswer.NOT_FOUND
    if job.terminal:
        sent_before = once is not None and maintenance.is_taken_once(tx, tenant, once)
        return SignalAnswer.DUPLICATE if sent_before else SignalAnswer.ALREADY_COMPLETE
    if once is not None and not maintenance.once(tx, tenant, once, SIGNAL_KNOWN_FOR):
        return SignalAnswer.DUPLICATE
    steps.put_signal(tx, job.seq, name, value)
    if not gate.signalled(job, name, tx.now):
        return SignalAnswer.KEPT
    unit_of_work.take(job)
    unit_of_work.flush()
    return SignalAnswer.DELIVERED


def cancel_group(tx: Tx, lanes: LaneBook, tenant: str, group_id: str, request: CancelRequest) -> bool:
    """Cancels a group. A root job that has queued nothing yet gets its scope now, so that jobs which it queues later
    are cancelled from the start."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    scopes = list(unit_of_work.scopes(_ints.decode(tx.value(tx.sql.scopes_of_group, (group_id, tenant)))).values())
    root = None if scopes else unit_of_work.find(tenant, [group_id]).get(group_id)
    if root is not None and root.scope_id is None and not root.terminal:
        scopes = [scope_of(unit_of_work, root)]
    for scope in scopes:
        cancel(scope, request)
    unit_of_work.flush()
    return bool(scopes) or root is not None


def await_group(tx: Tx, lanes: LaneBook, tenant: str, group_id: str, span_us: Span) -> None:
    """Records that somebody waits for a group. A root job without a scope gets it now, because a scope that is opened
    later would not contain that."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    root = unit_of_work.find(tenant, [group_id]).get(group_id)
    if root is not None and root.scope_id is None and not root.terminal:
        scope_of(unit_of_work, root)
        unit_of_work.flush()
    tx.run(tx.sql.await_group, (tx.now + span_us, group_id, tenant))


def cascade(tx: Tx, lanes: LaneBook, limit: int) -> Consequences:
    """Continues postponed work."""
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work, limit)
    taken = unit_of_work.take_postponed(limit)
    propagation.resume(taken)
    consequences = propagation.run()
    unit_of_work.flush()
    if tx.passed_over:  # Work that was deferred because of that stays, and is no reason to continue at once.
        return structs.replace(consequences, more=consequences.more or len(taken) == limit)
    return structs.replace(consequences, more=tx.row(tx.sql.any_cascade) is not None)
