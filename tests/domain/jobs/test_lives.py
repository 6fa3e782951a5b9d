"""Random lives: whatever happens to a job, in any order, the promises about it hold after every step."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ropewalk.domain.failure import DEADLINE_EXCEEDED
from ropewalk.domain.jobs.history import HistoryEntry, assemble
from ropewalk.domain.jobs.operations import (
    EndRequest,
    RetryRequest,
    UpdateRequest,
    cancel,
    end,
    refusal_to_retry,
    retry,
    update,
)
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.record import AttemptRecord, CompensationSpec, EventRecord, JobRecord, NewJob
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.states import Move, Status, is_legal
from ropewalk.domain.jobs.transition import Effects, decide, expire, lose, settle
from ropewalk.domain.time import SECOND, Instant
from ropewalk.domain.workflow.completion import Suspension
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.domain.workflow.gate import doom, signalled, wait_is_over
from tests.budget import BUDGET
from tests.domain.records import NOW, OOPS, a_job, start

spans = st.integers(0, 3 * SECOND)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Completed(b"3")),
    st.builds(Errored, st.just(OOPS), st.none() | spans),
    st.just(Crashed(OOPS)),
    st.just(Aborted(OOPS)),
    st.builds(Deferred, delay_us=spans),
    st.builds(Released, spans),
    st.just(Expired()),
    st.just(Cancelled()),
    st.builds(Suspended, st.builds(Suspension, position=st.just(0), name=st.just("nap"), span_us=spans)),
    st.builds(
        Suspended,
        st.builds(
            Suspension, position=st.just(0), name=st.just("call"), signal=st.just("ring"), span_us=st.none() | spans
        ),
    ),
)
policies = st.sampled_from(get_args(Policy))
retry_requests = st.builds(
    RetryRequest,
    reset_attempts=st.booleans(),
    priority=st.none() | st.integers(-1000, 1000),
    delay_us=spans,
    fresh=st.booleans(),
    include_cancelled=st.booleans(),
)


class Life(RuleBasedStateMachine):
    """A job, a clock, and everything a store would have written about the job."""

    job: JobRecord
    now: Instant
    attempts: list[AttemptRecord]
    events: list[EventRecord]
    follow_ups: list[NewJob]
    ends: list[int]
    """the run of every arrival at a terminal status"""

    @initialize(
        max_attempts=st.none() | st.integers(1, 4),
        max_crashes=st.integers(1, 3),
        ttl_us=st.none() | st.integers(0, 20 * SECOND),
        strict_order=st.booleans(),
        compensated=st.booleans(),
    )
    def submit(
        self, max_attempts: int | None, max_crashes: int, ttl_us: int | None, strict_order: bool, compensated: bool
    ) -> None:
        self.job = a_job(
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            ttl_us=ttl_us,
            strict_order=strict_order,
            on_failure=CompensationSpec(type="apologise") if compensated else None,
        )
        self.now = NOW
        self.attempts, self.events, self.follow_ups, self.ends = [], [], [], []

    @rule(span=spans)
    def time_passes(self, span: int) -> None:
        self.now += span

    @precondition(lambda self: self.job.ready_at(self.now))
    @rule(epoch=st.integers(0, 2))
    def claim(self, epoch: int) -> None:
        fence = self.job.fence
        start(self.job, epoch=epoch, now=self.now)
        assert self.job.fence > fence

    @precondition(lambda self: self.job.status is Status.RUNNING)
    @rule(outcome=outcomes, roll=st.floats(0, 1, exclude_max=True))
    def settle(self, outcome: Outcome, roll: float) -> None:
        self.write(settle(self.job, decide(self.job, outcome, BUILT_IN, roll), self.now))

    @precondition(lambda self: self.job.status is Status.RUNNING)
    @rule(started=st.booleans())
    def lose(self, started: bool) -> None:
        self.write(lose(self.job, started=started, now=self.now))

    @precondition(lambda self: self.job.status is Status.WAITING and (self.job.deadline or self.now + 1) <= self.now)
    @rule()
    def expire(self) -> None:
        self.write(expire(self.job, self.now))

    @rule(force=st.booleans())
    def cancel(self, force: bool) -> None:
        before = self.job.status
        _, event = cancel(self.job, reason="enough", force=force, now=self.now)
        if before is not self.job.status:
            self.ends.append(self.job.run)
        if event is not None:
            self.events.append(event)

    @rule(asked=retry_requests)
    def retry(self, asked: RetryRequest) -> None:
        if refusal_to_retry(self.job, asked) is None:
            before = self.job.status
            self.events.append(retry(self.job, asked, self.now))
            assert is_legal(self.job.last_move, before, self.job.status)

    @precondition(lambda self: self.job.status is Status.WAITING)
    @rule(priority=st.none() | st.integers(-1000, 1000), wait=st.none() | spans, run_now=st.booleans())
    def update(self, priority: int | None, wait: int | None, run_now: bool) -> None:
        run_at = None if wait is None else self.now + wait
        event = update(self.job, UpdateRequest(priority=priority, run_at=run_at, run_now=run_now), self.now)
        if event is not None:
            self.events.append(event)

    @precondition(lambda self: self.job.awaits is not None)
    @rule(name=st.sampled_from(("ring", "knock")))
    def signal(self, name: str) -> None:
        assert signalled(self.job, name, self.now) == (name == "ring")
        assert self.job.ready_at(self.now) == (name == "ring")

    @precondition(lambda self: self.job.awaits is not None and (self.job.wake_at or self.now + 1) <= self.now)
    @rule()
    def wait_is_over(self) -> None:
        assert wait_is_over(self.job, self.now) is None
        assert self.job.ready_at(self.now)

    @precondition(lambda self: self.job.status is Status.WAITING and self.job.start_rev == 0)
    @rule(policy=policies)
    def doom(self, policy: Policy) -> None:
        self.write(doom(self.job, policy, OOPS, self.now))

    @precondition(lambda self: not self.job.terminal)
    @rule(failed=st.booleans())
    def end(self, failed: bool) -> None:
        self.write(end(self.job, EndRequest(error=OOPS if failed else None), self.now))

    def write(self, effects: Effects) -> None:
        if self.job.terminal:
            self.ends.append(self.job.run)
        if effects.attempt is not None:
            self.attempts.append(effects.attempt)
        if effects.event is not None:
            self.events.append(effects.event)
        if effects.compensation is not None:
            self.follow_ups.append(effects.compensation)

    @invariant()
    def budgets_hold(self) -> None:
        job = self.job
        assert job.attempt >= 0
        assert job.max_attempts is None or job.attempt <= job.max_attempts
        assert 0 <= job.crashes <= job.max_crashes

    @invariant()
    def a_lease_belongs_to_a_running_job_and_to_no_other(self) -> None:
        assert (self.job.lease_expires_at is not None) == (self.job.status is Status.RUNNING)

    @invariant()
    def a_job_names_the_worker_that_holds_or_completed_it(self) -> None:
        named = self.job.status is Status.RUNNING or self.job.last_move is Move.COMPLETE
        assert self.job.owner == ("worker-a" if named else None)

    @invariant()
    def the_last_word_on_an_expired_job_is_its_deadline(self) -> None:
        if self.job.last_move is Move.EXPIRE:
            assert self.job.error == DEADLINE_EXCEEDED

    @invariant()
    def only_a_waiting_job_waits_for_something(self) -> None:
        waits = (self.job.unmet > 0, self.job.awaits is not None)
        assert waits in ((False, False), (True, True))
        assert not any(waits) or self.job.status is Status.WAITING
        assert self.job.wake_at is None or all(waits)

    @invariant()
    def a_run_ends_once(self) -> None:
        assert self.ends == sorted(set(self.ends))
        assert (self.job.finished_at is not None) == self.job.terminal == (self.job.run in self.ends)

    @invariant()
    def a_failure_compensates_once_per_run(self) -> None:
        assert len({job.id for job in self.follow_ups}) == len(self.follow_ups)
        if self.job.status in (Status.FAILED, Status.DEAD_LETTER) and self.job.on_failure is not None:
            assert [job for job in self.follow_ups if job.origin is not None and job.origin.run == self.job.run]

    @invariant()
    def the_sort_keys_follow_priority_and_time(self) -> None:
        job = self.job
        assert (job.prio_key, job.time_key) == order_key(job.priority, job.run_at, job.flags)

    @invariant()
    def history_has_no_gap(self) -> None:
        history = assemble(self.job, self.attempts, self.events)
        assert [entry.rev for entry in history] == list(range(1, self.job.rev + 1)), kinds(history)
        assert all(earlier.at <= later.at for earlier, later in pairwise(history))


def kinds(history: list[HistoryEntry]) -> str:
    return " ".join(f"{entry.rev}:{entry.kind}" for entry in history)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150 * BUDGET, stateful_step_count=30)
