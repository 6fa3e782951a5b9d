"""The errors of a rehearsal that cannot go on: they name each job that has not ended, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ropewalk.domain.jobs.record import DEFAULT_TENANT, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.why import Why

if TYPE_CHECKING:
    from ropewalk.testing.rehearsal import Rehearsal

NAMED_MAX: Final = 10
"""How many unfinished jobs a message names."""


class Stalled(AssertionError):
    """A rehearsal cannot go on. The message names the jobs that have not ended and what each of them waits for."""


async def handlers_stalled(rehearsal: Rehearsal, seconds: float) -> Stalled:
    """Return the error of a drain whose handlers do not return."""
    return Stalled(
        f"the drain cannot go on: no attempt has ended for {seconds:g} s. {await _unfinished(rehearsal)}\n"
        "The clock stands still in a drain. A handler that waits for another job needs a slot for that job: "
        "drain(concurrency=2). A handler that really takes longer needs Rehearsal(app, timeout=...)."
    )


async def never_ending(rehearsal: Rehearsal, attempts: int, attempts_max: int) -> Stalled:
    """Return the error of a drain that makes more attempts than it may."""
    return Stalled(
        f"the drain made {attempts:,} attempts and there is still more to run. {await _unfinished(rehearsal)}\n"
        "Look for a job that queues itself, or that retries or defers without a delay. If so many attempts are meant, "
        f"call drain(attempts_max=...) with more than {attempts_max:,}."
    )


async def nobody_runs_it(rehearsal: Rehearsal, seconds: float) -> Stalled:
    """Return the error of a wait for a result during which no job could run."""
    return Stalled(
        f"the test has waited {seconds:g} s for a job while nothing ran. {await _unfinished(rehearsal)}\n"
        "Jobs of a rehearsal run in `await rehearsal.drain()`, or in `await rehearsal.run(job)`, and time passes in "
        "`await rehearsal.advance(...)`: call these before you wait for a result."
    )


async def _unfinished(rehearsal: Rehearsal) -> str:
    jobs = [job for job in rehearsal.records() if not job.terminal]
    if not jobs:
        return "Every job has ended."
    jobs.sort(key=lambda job: (job.status is not Status.RUNNING, job.seq))
    lines = [_line(job, await rehearsal.tenant(job.tenant).why(job.id)) for job in jobs[:NAMED_MAX]]
    if len(jobs) > NAMED_MAX:
        lines.append(f"  and {len(jobs) - NAMED_MAX:,} more")
    return "These jobs have not ended:\n" + "\n".join(lines)


def _line(job: JobRecord, why: Why) -> str:
    owner = "" if job.tenant == DEFAULT_TENANT else f" of tenant {job.tenant}"
    more = ", and its handler has not returned" if why.cause == "running" else ""
    return f"  {job.type} {job.id}{owner} is {why.state.value}: {why.explanation}{more}"
