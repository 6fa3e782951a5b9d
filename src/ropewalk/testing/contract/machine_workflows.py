"""The rules of the state machine about workflows: dependencies, completion plans, chains, signals, steps and groups."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec import structs

from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.workflow.completion import CompletionPlan, StepRecord
from ropewalk.domain.workflow.dependency import NewGate, ParentKind
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.contract import strategies, workflow_strategies
from ropewalk.testing.contract.bench import holder
from ropewalk.testing.contract.builders import BOOM
from ropewalk.testing.contract.comparable import ended, ordered_consequences, settled
from ropewalk.testing.contract.lockstep import MANY, Lockstep

pick = st.integers(0, 30)
"""The position of a job or lease, counted from the newest."""
picks = st.lists(pick, min_size=1, max_size=4)


class WorkflowRules(RuleBasedStateMachine):
    """A part of the state machine of machine.py, which keeps the stores and the leases."""

    stores: Lockstep
    leases: list[JobRecord]

    def submit_all(self, submissions: Sequence[Submission]) -> None:
        raise NotImplementedError

    def some_job(self) -> bool:
        return bool(self.stores.jobs)

    def some_lease(self) -> bool:
        return bool(self.leases)

    @precondition(some_job)
    @rule(new=strategies.new_jobs, which=picks, gate=workflow_strategies.gates, kinds=workflow_strategies.parent_kinds)
    def submit_dependant(self, new: NewJob, which: list[int], gate: NewGate, kinds: list[ParentKind]) -> None:
        """Submit a job that depends on any existing jobs, finished or not, of its tenant or of another one."""
        self.submit_all([Submission(jobs=[structs.replace(new, gate=self.gate_on(which, gate, kinds))])])

    @rule(
        batch=st.lists(strategies.new_jobs, min_size=2, max_size=4),
        gate=workflow_strategies.gates,
        kinds=workflow_strategies.parent_kinds,
    )
    def submit_graph(self, batch: list[NewJob], gate: NewGate, kinds: list[ParentKind]) -> None:
        """Submit the job that waits for the others before them."""
        *parents, child = batch
        gated = structs.replace(child, gate=workflow_strategies.over(gate, kinds, [job.id for job in parents]))
        self.submit_all([Submission(jobs=[gated, *(structs.replace(job, tenant=child.tenant) for job in parents)])])

    @precondition(some_lease)
    @rule(
        which=pick,
        children=st.lists(strategies.new_jobs, max_size=3),
        then=st.none() | strategies.new_jobs,
        value=workflow_strategies.contributions,
    )
    def complete_with_plan(
        self, which: int, children: list[NewJob], then: NewJob | None, value: Contribution | None
    ) -> None:
        """Complete a job with children, of which the later ones wait for the first."""
        lease = self.leases[-1 - which % len(self.leases)]
        written = [structs.replace(child, tenant=lease.tenant, parent_id=lease.id) for child in children]
        for number, child in enumerate(written[1:], 1):
            written[number] = structs.replace(child, gate=workflow_strategies.after(written[0].id))
        following = None if then is None else structs.replace(then, tenant=lease.tenant)
        left = CompletionPlan(children=tuple(written), continuation=following, contribution=value)
        asked = Settlement(seq=lease.seq, fence=lease.fence, move=Move.COMPLETE, result=b"1", plan=left)
        self.stores.ask(lambda store: store.settle(holder(lease).owner, [asked]), compared=settled)

    @precondition(some_job)
    @rule(which=pick, failed=st.booleans())
    def end_from_outside(self, *, which: int, failed: bool) -> None:
        job = self.a_job(which)
        asked = EndRequest(error=BOOM) if failed else EndRequest(result=b"1")
        self.stores.ask(lambda store: store.end(job.tenant, job.id, asked), compared=ended)

    @precondition(some_job)
    @rule(which=pick, name=workflow_strategies.signals, value=st.none() | st.just(b"1"))
    def signal(self, which: int, name: str, value: bytes | None) -> None:
        job = self.a_job(which)
        self.stores.ask(lambda store: store.signal(job.tenant, job.id, name, value))

    @precondition(some_lease)
    @rule(which=pick, step=workflow_strategies.steps, name=st.none() | workflow_strategies.signals)
    def step(self, which: int, step: StepRecord, name: str | None) -> None:
        lease = self.leases[-1 - which % len(self.leases)]
        if name is None:
            self.stores.ask(lambda store: store.record_step(holder(lease), step))
        else:
            self.stores.ask(lambda store: store.take_signal(holder(lease), step, name))
        self.stores.ask(lambda store: store.steps(lease.seq))

    @precondition(some_job)
    @rule(which=pick)
    def cancel_group(self, which: int) -> None:
        job = self.a_job(which)
        group = job.group_id or job.id
        self.stores.ask(lambda store: store.cancel_group(job.tenant, group, reason="r", force=False))

    @rule(limit=st.sampled_from((1, MANY)))
    def cascade(self, limit: int) -> None:
        self.stores.ask(lambda store: store.cascade(limit), compared=ordered_consequences)

    @rule(limit=st.integers(1, 4), span_us=strategies.spans)
    def take_orphans(self, limit: int, span_us: int) -> None:
        for orphan in self.stores.ask(lambda store: store.take_orphans(limit, span_us))[:1]:
            self._report(orphan.id)
        self.stores.ask(lambda store: store.orphans_are_taken())

    @precondition(some_job)
    @rule(which=picks)
    def look_at_graphs(self, which: list[int]) -> None:
        for number in which:
            self._look_at(self.a_job(number))

    def _report(self, orphan_id: str) -> None:
        self.stores.ask(lambda store: store.orphan_reported(orphan_id))

    def _look_at(self, job: JobRecord) -> None:
        group = job.group_id or job.id
        self.stores.ask(lambda store: store.groups(job.tenant, [group]))
        self.stores.ask(lambda store: store.contributions(job.tenant, group))
        self.stores.ask(lambda store: store.chain(job.tenant, job.id))
        self.stores.ask(lambda store: store.dependencies(job.seq))
        self.stores.ask(lambda store: store.edges([job.seq]))

    def a_job(self, number: int) -> JobRecord:
        return self.stores.jobs[-1 - number % len(self.stores.jobs)]

    def gate_on(self, which: Sequence[int], gate: NewGate, kinds: list[ParentKind]) -> NewGate:
        return workflow_strategies.over(gate, kinds, [self.a_job(each).id for each in which])
