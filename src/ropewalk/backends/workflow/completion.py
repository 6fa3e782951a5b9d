"""Completes a job that leaves more than a result: children, a continuation, or a contribution to its group's value."""

from __future__ import annotations

from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.scopes import chain_head, root_scope, scope_of
from ropewalk.backends.workflow.submission import Draft
from ropewalk.backends.workflow.unit_of_work import UnitOfWork
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.flags import CHAINED, CONTINUED
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.gate import take_over_priority
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE, TAKE_THE_RESULT, Contribution, contribute
from ropewalk.errors import Conflict, RopewalkError


def end_from_outside(unit_of_work: UnitOfWork, propagation: Propagation, job: JobRecord, asked: EndRequest) -> None:
    """Ends a job on behalf of somebody outside, with all consequences. Its result contributes to the value of its group
    like any other."""
    unit_of_work.take(job)
    effects = operations.end(job, asked, unit_of_work.now)
    if asked.result is not None:
        value = Contribution(type=job.type, value=asked.result)
        PreparedPlan(unit_of_work, job, CompletionPlan(contribution=value)).write(propagation)
    propagation.ended(job, effects)


class PreparedPlan:
    """A plan that is checked before anything is written. `write` is called after the job was completed."""

    def __init__(self, unit_of_work: UnitOfWork, job: JobRecord, plan: CompletionPlan) -> None:
        self._unit_of_work = unit_of_work
        self._job = job
        self._plan = plan
        self._children = Draft(unit_of_work, plan.children, job) if plan.children else None
        self._next = None
        if plan.continuation is not None:
            self._next = Draft(unit_of_work, [plan.continuation], self._head())

    @property
    def continues(self) -> bool:
        """Whether the chain of the job goes on."""
        return self._next is not None

    def refusal(self) -> RopewalkError | None:
        """Returns why the plan cannot be written, such as an unknown dependency, a conflicting id, or a fold over an
        outdated value; None if it can."""
        try:
            if self._plan.contribution is not None:
                self._check_fold(self._plan.contribution)
            if self._children is not None:
                self._children.judge()
            if self._next is not None:
                self._next.judge()
                self._check_new(self._next)
        except RopewalkError as refused:
            return refused.with_traceback(None)
        return None

    def write(self, propagation: Propagation) -> None:
        """Writes the plan. The job is completed already, and its own end is propagated after this."""
        if self._children is not None:
            propagation.written(self._children)
        if self._next is not None:
            self._continue(self._next, propagation)
        if self._plan.contribution is not None:
            self._contribute(self._plan.contribution)

    def _head(self) -> JobRecord | None:
        """Returns the first member of the chain; None if it was deleted, and its scope with it. Then the chain goes on
        without being counted."""
        if not self._job.chain_index:
            return self._job
        heads = self._unit_of_work.load([chain_head(self._job)])
        return heads[0] if heads else None

    def _check_new(self, draft: Draft) -> None:
        [(job, duplicate)] = draft.answers()
        if duplicate:
            raise Conflict(f"continue_with: job {job.id} is there already; continue with a new one (job.again())")
        if any(child.id == job.id for child in self._plan.children):
            raise Conflict(
                f"continue_with: job {job.id} is queued as a child, too; continue with a new one (job.again())"
            )
        if job.idempotency_key is not None and any(_same_key(child, job) for child in self._plan.children):
            raise Conflict(f"continue_with: key {job.idempotency_key!r} is that of a child, too; use another one")

    def _continue(self, draft: Draft, propagation: Propagation) -> None:
        """Adds the next member to the chain. A pair of chain and index is unique, because a job continues only once,
        when it completes."""
        job = self._job
        self._unit_of_work.take(job)
        [(following, _)] = draft.answers()
        if job.chain_index:
            following.scope_id = job.scope_id
        job.flags |= CHAINED | CONTINUED
        job.chain_id = job.chain_id or job.id
        job.chain_index = job.chain_index or 0
        following.flags |= CHAINED
        following.chain_id, following.chain_index = job.chain_id, job.chain_index + 1
        assert self._plan.continuation is not None
        if self._plan.continuation.inherits_priority:
            take_over_priority(following, job.priority)
        propagation.written(draft)

    def _check_fold(self, added: Contribution) -> None:
        if added.reducer != "custom":
            return
        root = root_scope(self._unit_of_work, self._job)
        version = 0 if root is None else root.value.version
        if added.expected_version != version:
            raise Conflict(f"the group's value is at version {version}, this was folded over {added.expected_version}")

    def _contribute(self, added: Contribution) -> None:
        """Adds the contribution to the value of the group. A group of a single job has no value of its own but the
        result of the job, unless the contribution is folded."""
        root = root_scope(self._unit_of_work, self._job)
        if root is None:
            if self._job.scope_id is not None or added.reducer in TAKE_THE_RESULT:
                return
            root = scope_of(self._unit_of_work, self._job)
        root.value = contribute(root.value, added)
        if added.reducer in KEPT_ONE_BY_ONE:
            self._unit_of_work.keep_contribution(root.id, self._job.seq, added)


def _same_key(child: NewJob, job: JobRecord) -> bool:
    named = (child.tenant, child.type, child.key and child.key.key)
    return named == (job.tenant, job.type, job.idempotency_key)
