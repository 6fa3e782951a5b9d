"""The heartbeat of a remote worker: it renews the leases that the worker names, and gives back all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain import logs
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.outcome import Errored, Expired, Outcome
from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import SECOND, Span, to_span
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.remote_workers.claiming import give_back
from ropewalk.http.remote_workers.held import Held, held_by, loss_reasons
from ropewalk.http.remote_workers.leases import LEASE_US, lease_us, lease_us_of, timeout_us_of
from ropewalk.http.remote_workers.settling import settle_jobs
from ropewalk.http.remote_workers.shapes import (
    Beat,
    CancelledLease,
    Heartbeat,
    HeldLease,
    LogLevel,
    Loss,
    LostLease,
)
from ropewalk.http.service import Service
from ropewalk.http.wire import seconds
from ropewalk.ports.store.leases import Renewal, Renewed

RENEWALS_PER_LEASE: Final = 3
_LEVELS: Final = {
    LogLevel.DEBUG: 10,
    LogLevel.INFO: 20,
    LogLevel.WARNING: 30,
    LogLevel.ERROR: 40,
    LogLevel.CRITICAL: 50,
}


def heartbeat_every_us(service: Service, types: Sequence[str]) -> Span:
    """Returns how often a worker of these types renews its leases: three times within the shortest one."""
    spans = [lease_us_of(service.registry.get(each)) for each in types if each in service.registry]
    return min([LEASE_US, *spans]) // RENEWALS_PER_LEASE


async def beat(call: Call[Heartbeat, NoQuery]) -> Beat:
    held = await held_by(call, call.body.worker_id)
    service = call.service
    known = [(lease, job) for lease in call.body.leases if (job := held.job(lease.job_id, lease.fence)) is not None]
    unknown = [(each.job_id, each.fence) for each in call.body.leases if held.job(each.job_id, each.fence) is None]
    overrun = [(job, why) for _, job in known if (why := _overrun(service, held, job)) is not None]
    lost = [LostLease(job_id=job.id, fence=str(job.fence), reason=Loss.of(why)) for job, why in overrun]
    if overrun:
        await settle_jobs(service, held, [(job, _outcome(service, job, why), None) for job, why in overrun])
    over = {job.id for job, _ in overrun}
    renewed = [(lease, job) for lease, job in known if job.id not in over]
    answer = await call.store.renew(held.card.id, [_renewal(service, held, lease, job) for lease, job in renewed])
    await _give_back_unnamed(service, held, {job.id for _, job in known})
    reasons = await loss_reasons(call, held, unknown)
    lost += [LostLease(job_id=job_id, fence=fence, reason=why) for (job_id, fence), why in reasons.items()]
    return _answer(answer, [job for _, job in renewed], lost)


def _answer(answer: Renewed, jobs: list[JobRecord], lost: list[LostLease]) -> Beat:
    by_seq = {job.seq: job for job in jobs}
    lost += [
        LostLease(job_id=by_seq[each.seq].id, fence=str(each.fence), reason=Loss.of(each.reason))
        for each in answer.lost
    ]
    return Beat(
        lost=lost,
        cancel=[
            CancelledLease(job_id=by_seq[each.seq].id, fence=str(each.fence), reason=each.reason, force=each.force)
            for each in answer.cancels
        ],
        busy=[by_seq[seq].id for seq in answer.busy],
        drain=answer.drain,
    )


async def _give_back_unnamed(service: Service, held: Held, named: set[str]) -> None:
    """Releases the leases that are older than one heartbeat and that the worker does not name.

    The answer to their claim was lost, so their handlers never ran. Counted as started, a lost answer would make a dead
    letter of a last attempt.
    """
    every = heartbeat_every_us(service, held.card.types)
    unnamed = [job for job in held.jobs.values() if job.id not in named and _age(held, job) > every]
    if unnamed:
        await give_back(service, held.card.id, unnamed)


def _age(held: Held, job: JobRecord) -> Span:
    return held.now - (held.now if job.started_at is None else job.started_at)


def _overrun(service: Service, held: Held, job: JobRecord) -> LossReason | None:
    """Returns why the server ends an attempt itself: its worker let it go on for a whole lease past its end."""
    lease, timeout = lease_us(service, job), timeout_us_of(service, job)
    if job.deadline is not None and held.now > job.deadline + lease:
        return LossReason.DEADLINE
    if timeout is not None and _age(held, job) > timeout + lease:
        return LossReason.TIMEOUT
    return None


def _outcome(service: Service, job: JobRecord, why: LossReason) -> Outcome:
    if why is LossReason.DEADLINE:
        return Expired()
    timeout = timeout_us_of(service, job) or 0
    message = f"the attempt ran longer than its timeout of {timeout / SECOND:g} s, and its worker did not stop it"
    return Errored(ErrorInfo(category=Category.TIMEOUT, code="timeout", message=message))


def _renewal(service: Service, held: Held, lease: HeldLease, job: JobRecord) -> Renewal:
    progress = lease.progress or None
    message = None if progress is None or progress.message is None else logs.text(progress.message)
    return Renewal(
        seq=job.seq,
        fence=job.fence,
        lease_us=lease_us(service, job),
        progress=None if progress is None else Progress(progress.percent, message, 0),
        lines=tuple(
            LogLine(
                position=int(line.position),
                attempt=job.attempt,
                at=held.now - to_span(seconds(line.ago, "ago"), "ago"),
                level=_LEVELS[line.level],
                message=logs.text(line.message),
                fields=logs.fields_json(line.fields),
            )
            for line in lease.log
        ),
    )
