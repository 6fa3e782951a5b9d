"""Explains why a job is not running: one named cause, and what to do about it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.misfit import is_misfit, refusals_of
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT
from ropewalk.domain.limits.headroom import FullLimit
from ropewalk.domain.time import SECOND, Instant, Span, to_datetime, to_seconds

Cause: TypeAlias = Literal[
    "finished",
    "damaged",
    "newer_release",
    "expired",
    "running",
    "worker_silent",
    "cancelling",
    "dependencies",
    "signal",
    "misfit",
    "retrying",
    "delayed",
    "paused",
    "no_worker",
    "limit",
    "suspect",
    "held_back",
    "busy",
]

HELD_BACK_AFTER: Final[Span] = 2 * SECOND
"""A worker with a free slot claims a ready job much faster than this, unless one of its settings prevents it."""


class Why(Struct, frozen=True, kw_only=True):
    """The reason why a job is not running, or that it is."""

    state: State
    cause: Cause
    """The cause for machines."""
    explanation: str
    """The explanation for people."""


class WhyInputs(Struct, frozen=True, kw_only=True):
    """The facts beside the job itself that `explain` needs."""

    paused: bool
    """Whether the queue of the job is paused."""
    served: bool
    """Whether a live worker claims jobs of this tenant, queue and type."""
    ahead: int | None
    """The number of ready jobs of the same tenant and queue that come first; None if the store cannot say it."""
    free: int = 0
    """The number of live workers that claim jobs of this tenant, queue and type and have a free slot."""
    full: tuple[FullLimit, ...] = ()
    """The limits that leave no room for the job now."""
    waits_for: tuple[str, ...] = ()
    """The ids of some of the parents that have not ended."""
    damaged: tuple[str, ...] = ()
    """The stored columns that contradict others, beside those that the job itself names as damaged."""


def explain(job: JobRecord, inputs: WhyInputs, now: Instant) -> Why:
    """Returns the reason why this job is not running at the instant `now` of the store's clock."""
    state = job.state_at(now)
    cause, explanation = _cause(job, state, inputs, now)
    return Why(state=state, cause=cause, explanation=explanation)


def _cause(job: JobRecord, state: State, inputs: WhyInputs, now: Instant) -> tuple[Cause, str]:
    if job.terminal:
        at = to_datetime(job.finished_at or job.updated_at)
        message = "" if job.error is None else f": {job.error.message}"
        return "finished", f"it ended as {state.value} at {at:%Y-%m-%d %H:%M:%S} UTC{message}"
    if state is State.RUNNING:
        return _running(job, now)
    if (unread := _unread(job, inputs)) is not None:
        return unread
    if job.deadline is not None and job.deadline <= now:
        at = to_datetime(job.deadline)
        return "expired", f"its deadline passed at {at:%Y-%m-%d %H:%M:%S} UTC: it starts no more, a worker ends it"
    if is_misfit(job.error):
        return "misfit", _misfit(job, now)
    if state is State.PENDING:
        return _pending(job, inputs)
    if state is State.RETRYING:
        message = "an error" if job.error is None else job.error.message
        return "retrying", f"attempt {job.attempt} failed ({message}); it runs again in {_wait(job, now)}"
    if state is State.DELAYED:
        return "delayed", f"its time comes in {_wait(job, now)}, at {to_datetime(job.run_at):%Y-%m-%d %H:%M:%S} UTC"
    if inputs.paused:
        return (
            "paused",
            f"queue {job.queue!r} is paused; resume it with app.resume({job.queue!r}) or `ropewalk queues resume`",
        )
    if not inputs.served:
        return (
            "no_worker",
            f"no live worker serves type {job.type!r} on queue {job.queue!r}: start one that registers it",
        )
    if inputs.full:
        return "limit", _full(inputs.full[0], now)
    if job.suspect:
        crashes = f"{job.crashes} of {job.max_crashes}"
        return "suspect", f"a worker died while running it ({crashes}): it waits for a free slot and for others like it"
    return _in_turn(job, inputs, now)


def _held_back(job: JobRecord, free: int) -> str:
    workers = "1 live worker serves" if free == 1 else f"{free} live workers serve"
    return (
        f"it is ready, and no job of its queue comes first; {workers} type {job.type!r} on queue {job.queue!r} with "
        "a free slot, but does not take it. One of three settings of a worker can do that: accept= declines the job, a "
        "RateLimited concurrency of the worker or the type is used up, or backpressure= makes the worker wait"
    )


def _unread(job: JobRecord, inputs: WhyInputs) -> tuple[Cause, str] | None:
    if damaged := dict.fromkeys((*job.damaged, *inputs.damaged)):
        named = ", ".join(damaged)
        return "damaged", f"its stored row is damaged ({named}): it becomes a dead letter as soon as a worker reads it"
    if job.format > RECORD_FORMAT:
        formats = f"format {job.format}, this release knows formats up to {RECORD_FORMAT}"
        return "newer_release", f"a newer release wrote it ({formats}): upgrade the workers"
    return None


def _in_turn(job: JobRecord, inputs: WhyInputs, now: Instant) -> tuple[Cause, str]:
    if inputs.free and inputs.ahead == 0 and now - max(job.created_at, job.run_at) >= HELD_BACK_AFTER:
        return "held_back", _held_back(job, inputs.free)
    if inputs.ahead is None:
        return "busy", "it is ready; it waits for its turn in its queue and for a free slot"
    return "busy", f"it is ready; {inputs.ahead} ready jobs of its queue come first"


def _misfit(job: JobRecord, now: Instant) -> str:
    refusals, message = refusals_of(job.error), "" if job.error is None else job.error.message
    tried = "" if refusals is None else f" ({len(refusals.workers)} so far)"
    again = f"it is tried again in {_wait(job, now)}" if job.run_at > now else "it waits for another one"
    return f"its arguments do not fit the code of any worker that has tried it{tried}: {message}; {again}"


def _full(full: FullLimit, now: Instant) -> str:
    limit, name = full.limit, f"{full.limit.kind} {full.name!r}"
    if full.next_at is None:
        if limit.tenant == EVERY_TENANT:  # how many of them are somebody else's is not for this tenant to know
            what = f"all {limit.concurrency} jobs that may run at once of {name}, of all tenants together, are running"
            return (
                f"{what}; raise it with app.set_limit(..., every_tenant=True) or `ropewalk limits set --every-tenant`"
            )
        setter = "app.set_limit(...) or `ropewalk limits set`"
        if limit.kind == "tenant":
            setter = "app.tenant(...).set_quota(...) or `ropewalk quotas set`"
        return f"{full.in_use} of at most {limit.concurrency} jobs of {name} are running; raise it with {setter}"
    assert limit.rate is not None
    wait = to_seconds(full.next_at - now)
    return f"{name} may start {limit.rate.count} jobs in {limit.rate.per:g} s, and has; the next may in {wait:.1f} s"


def _pending(job: JobRecord, inputs: WhyInputs) -> tuple[Cause, str]:
    until = "" if job.wake_at is None else f", until {to_datetime(job.wake_at):%Y-%m-%d %H:%M:%S} UTC at the latest"
    if job.awaits is not None:
        explanation = f"it waits for the signal {job.awaits!r}: send it with app.signal({job.id!r}, {job.awaits!r})"
        return "signal", explanation + until
    named = f": {', '.join(inputs.waits_for)}" if inputs.waits_for else ""
    if 0 < len(inputs.waits_for) < job.unmet:
        named += ", …"
    count = f"{job.unmet} unfinished {'dependency' if job.unmet == 1 else 'dependencies'}"
    return "dependencies", f"it waits for {count}{named}{until}"


def _running(job: JobRecord, now: Instant) -> tuple[Cause, str]:
    if job.lease_expires_at is not None and job.lease_expires_at <= now:
        return "worker_silent", f"worker {job.owner} stopped renewing; the job is taken back by the next sweep"
    if job.cancel is not None:
        return "cancelling", f"worker {job.owner} was asked to cancel it"
    return "running", f"worker {job.owner} runs attempt {job.attempt}"


def _wait(job: JobRecord, now: Instant) -> str:
    return f"{to_seconds(job.run_at - now):.1f} s"
