"""Rules about jobs: expired leases that no worker takes back, pauses, full limits, late schedules, dead letters,
damaged rows and newer records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import MINUTE, SECOND, Instant, Span
from ropewalk.observe.doctor.facts import Late
from ropewalk.ports.store.diagnosis import Work
from ropewalk.ports.store.findings import Finding, lasting, named, note, number_of, ok, warn
from ropewalk.ports.store.limits import LimitUse

SWEPT_WITHIN: Final[Span] = 10 * SECOND
"""Every worker looks for expired leases every 3 s and with its claims, so one that is older than this is a finding."""
HELD_UP_AFTER: Final[Span] = MINUTE
"""A full limit is a finding if jobs have waited behind it for this long."""
LATE_AFTER: Final[Span] = 10 * SECOND


def leases(work: Work, now: Instant) -> list[Finding]:
    """Any worker takes back expired leases within seconds. If some remain, no worker sweeps."""
    oldest = work.oldest_lease_over_at
    if oldest is None or now - oldest < SWEPT_WITHIN:
        return [ok("leases", "no job is stuck under a lease that is over")]
    return [
        warn(
            "leases",
            f"{number_of(work.leases_over, 'job')} of dead workers under leases that are over, the oldest for "
            f"{lasting(now - oldest)}, and nobody takes them back",
            "start a worker, of any type: each takes back what dead ones left, within seconds",
        )
    ]


def pauses(work: Work, now: Instant) -> list[Finding]:
    """Every pause was set on purpose, but a pause that keeps jobs waiting may have been forgotten."""
    if not work.paused:
        return [ok("pauses", "no queue is paused")]
    findings: list[Finding] = []
    for tenant, queue in work.paused:
        behind = [each for each in work.backlog if (each.lane.tenant, each.lane.queue) == (tenant, queue)]
        if not behind:
            continue
        jobs, oldest = sum(each.ready for each in behind), min(each.oldest_ready_at for each in behind)
        findings.append(
            note(
                "pauses",
                f"queue {queue!r} of tenant {tenant!r} is paused with {number_of(jobs, 'job')} behind it, the oldest "
                f"for {lasting(max(0, now - oldest))}",
                f"if that is over: `ropewalk queues resume {queue} --tenant {tenant}`",
            )
        )
    idle = [queue for _, queue in work.paused]
    return findings or [ok("pauses", f"paused, with no jobs that could start: {named(idle)}")]


def limits(full: Sequence[LimitUse], work: Work, now: Instant) -> list[Finding]:
    """A full limit does what it is for, but if jobs wait behind it for long, it may be too low."""
    findings: list[Finding] = []
    for use in full:
        limit = use.limit
        times = [each.oldest_ready_at for each in work.backlog if _concerns(use, each.lane)]
        waited = now - min(times, default=now)
        if waited < HELD_UP_AFTER:
            continue
        findings.append(
            note(
                "limits",
                f"{limit.kind} {limit.name!r} of tenant {limit.tenant!r} is full ({use.in_use} run), and jobs it may "
                f"concern have waited for {lasting(waited)}",
                "raise it (`ropewalk limits set`), or see what takes so long (`ropewalk jobs list --state running`)",
            )
        )
    return findings or [ok("limits", "no full limit holds jobs up for long")]


def schedules(late: Sequence[Late]) -> list[Finding]:
    """Workers fire schedules within a second after they are due. A schedule that stays due is fired by no worker."""
    over = [each for each in late if each.late_us >= LATE_AFTER]
    if not over:
        return [ok("schedules", "none is late")]
    shown = [f"{each.name!r} by {lasting(each.late_us)}" for each in over]
    return [
        warn(
            "schedules",
            f"{number_of(len(over), 'schedule')} should have fired and did not: {named(shown)}",
            "start a worker without --no-scheduler; where a function tells the times, one of the app that has it",
        )
    ]


def dead_letters(work: Work) -> list[Finding]:
    """Counts the dead letters by type."""
    if not work.dead_letters:
        return [ok("dead letters", "there are none")]
    most_first = sorted(work.dead_letters.items(), key=lambda each: (-each[1], each[0]))
    shown = [f"{count:,} of {job_type!r}" for job_type, count in most_first]
    return [
        note(
            "dead letters",
            f"{number_of(sum(work.dead_letters.values()), 'job')} gave up: {named(shown)}",
            "see why with `ropewalk jobs list --state dead_letter` and `jobs show`, then `jobs retry` or delete them",
        )
    ]


def damage(work: Work) -> list[Finding]:
    """Reports rows that cannot be read. The damage of a job that is not due yet is found when the job is read."""
    findings: list[Finding] = []
    if work.set_aside:
        findings.append(
            warn(
                "damage",
                f"{number_of(work.set_aside, 'job')} set aside as dead letters: their stored rows cannot be read",
                "`ropewalk jobs list --state dead_letter --text damaged_row` lists them: repair the columns that their "
                "errors name and retry them, or delete them; then find out what wrote there",
            )
        )
    if work.unreadable:
        findings.append(
            warn(
                "damage",
                f"rows that cannot be read are left out, in table {named(work.unreadable)}",
                "the log of whoever met them says what is wrong: repair or delete them",
            )
        )
    return findings or [ok("damage", "no row was found that cannot be read")]


def records(work: Work) -> list[Finding]:
    """Reports jobs in a record format that this release does not know."""
    if not work.newer_records:
        return [ok("records", "all are in a format this release knows")]
    return [
        warn(
            "records",
            f"{number_of(work.newer_records, 'job')} written by a newer release of ropewalk than this one",
            "workers of this release leave them alone: upgrade them, or run newer ones beside them",
        )
    ]


def _concerns(use: LimitUse, lane: LaneName) -> bool:
    """Whether the limit may apply to jobs of this lane, whose limit key is not known here."""
    limit = use.limit
    names = {"queue": lane.queue, "type": lane.type}
    return lane.tenant == limit.tenant and names.get(limit.kind, limit.name) == limit.name
