"""The routes for remote workers. Each call first reads from the store what the worker holds (held.py)."""

from __future__ import annotations

from msgspec import structs

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.time import to_span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import LeaseLost, RopewalkError
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import DetailCode, ErrorCode, HttpError, invalid
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.submission import submission_error, submission_result
from ropewalk.http.remote_workers import claiming, heartbeats, settling
from ropewalk.http.remote_workers.held import cancellation, held_by, held_lease, lease_lost, owner_prefix
from ropewalk.http.remote_workers.lease_shapes import WAIT_SECONDS_MAX, Claim, Claimed
from ropewalk.http.remote_workers.leases import LEASE_US
from ropewalk.http.remote_workers.outcome_shapes import OUTCOMES_MAX, Settle, SettleAnswer
from ropewalk.http.remote_workers.outcomes import child
from ropewalk.http.remote_workers.shapes import (
    Arrived,
    Beat,
    Checkpoint,
    HandlerAnswer,
    Heartbeat,
    Loss,
    OnceAnswer,
    OnceRequest,
    Registered,
    Registration,
    SignalAnswer,
    SignalRequest,
    Spawn,
    SpawnAnswer,
    StepResult,
    WorkerCall,
)
from ropewalk.http.remote_workers.steps import finished_step
from ropewalk.http.remote_workers.values import as_sent_or_none, as_stored
from ropewalk.http.routing import Routes
from ropewalk.http.wire import iso_duration, seconds
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.leases import Note, WorkerCard
from ropewalk.ports.store.submission import Submission

routes = Routes("remote workers")

PROTOCOL = 1
"""The version of the protocol that this server speaks."""
_WORKER = "a1b2c3d4e5f60718.0f1e2d3c4b5a6978"
_LEASE = {"worker_id": _WORKER, "job_id": "0199a3b4-7c00-7000-8000-000000000001", "fence": "1"}


@routes.post(
    "/worker/register",
    role=Role.WORK,
    audited=False,
    example={
        "protocol": 1,
        "name": "importer",
        "host": "box-7",
        "pid": 4711,
        "client": "ropewalk-node/1.0",
        "types": ["add"],
        "concurrency": 4,
    },
)
async def register_worker(call: Call[Registration, NoQuery]) -> Registered:
    """Register a remote worker that has started.

    It gets a new id, which only calls with the same token may use. A worker that is not found later registers anew:
    everything it held is lost.
    """
    body, service = call.body, call.service
    if body.protocol != PROTOCOL:
        message = f"protocol={body.protocol} is not spoken here: this server speaks {PROTOCOL}"
        raise invalid(message, field="protocol", code=DetailCode.UNSUPPORTED_PROTOCOL)
    _check_types(call)
    every = heartbeats.heartbeat_every_us(service, body.types)
    await service.open()
    owner = f"{owner_prefix(call.identity)}.{service.runtime.token()}"
    card = WorkerCard(
        id=owner,
        host=body.host,
        pid=int(body.pid),
        types=tuple(dict.fromkeys(body.types)),
        queues=_queues(call),
        tenants=(call.tenant,),
        concurrency=int(body.concurrency),
        lease_us=LEASE_US,
    )
    await call.store.register(card)
    return Registered(
        worker_id=owner,
        lease=iso_duration(LEASE_US),
        heartbeat_every=iso_duration(every),
        wait_max=iso_duration(round(WAIT_SECONDS_MAX * 1_000_000)),
        batch_max=OUTCOMES_MAX,
        drain=False,
    )


@routes.post(
    "/worker/claim",
    role=Role.WORK,
    audited=False,
    example={"worker_id": _WORKER, "slots": 2, "wait": "PT20S"},
)
async def claim_jobs(call: Call[Claim, NoQuery]) -> Claimed:
    """Claim jobs, and wait for them if there are none.

    The answer comes when there is work or the wait is over. Every job in it counts as started.
    """
    return await claiming.claim(call)


@routes.post("/worker/heartbeat", role=Role.WORK, audited=False, example={"worker_id": _WORKER, "leases": []})
async def renew_leases(call: Call[Heartbeat, NoQuery]) -> Beat:
    """Renew all leases of a worker, and report progress and log lines.

    A lease that is older than one heartbeat and is not named is given back: the answer to its claim was lost.
    """
    return await heartbeats.beat(call)


@routes.post("/worker/settle", role=Role.WORK, audited=False, example={"worker_id": _WORKER, "outcomes": []})
async def settle_jobs(call: Call[Settle, NoQuery]) -> SettleAnswer:
    """Say how attempts ended. Repeating a call is safe: an outcome that was accepted before is not accepted again."""
    return await settling.settle(call)


@routes.post(
    "/worker/checkpoint",
    role=Role.WORK,
    audited=False,
    errors=(ErrorCode.LEASE_LOST,),
    example={**_LEASE, "state": {"row": 1000}},
)
async def save_checkpoint(call: Call[Checkpoint, NoQuery]) -> HandlerAnswer:
    """Store the state from which a later attempt of the job goes on."""
    held, job = await held_lease(call, call.body)
    limit = call.service.app_state.bounds.checkpoint_bytes_max
    data = as_stored(call.body.state, limit=limit, field="state") or b"null"
    answer = await call.store.note(Note(holder=held.holder(job), checkpoint=data))
    _still_held(answer.lost)
    return HandlerAnswer(cancel=cancellation(job))


@routes.post(
    "/worker/steps",
    role=Role.WORK,
    audited=False,
    errors=(ErrorCode.LEASE_LOST, ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED),
    example={**_LEASE, "position": 0, "name": "charge", "value": {"receipt": 7}},
)
async def record_step(call: Call[StepResult, NoQuery]) -> HandlerAnswer:
    """Store the value of a finished step, or that a wait for a signal ended without the signal.

    Steps are numbered from 0 in the order of the program. A later attempt gets them with its lease.
    """
    workflows = WORKFLOWS.of(call.store)
    held, job = await held_lease(call, call.body)
    step = await finished_step(call, job)
    answer = await workflows.record_step(held.holder(job), step)
    _still_held(answer.lost)
    return HandlerAnswer(cancel=cancellation(job))


@routes.post(
    "/worker/signals",
    role=Role.WORK,
    audited=False,
    errors=(ErrorCode.LEASE_LOST, ErrorCode.UNSUPPORTED),
    example={**_LEASE, "position": 1, "name": "wait_for-approved-1", "signal": "approved"},
)
async def take_signal(call: Call[SignalRequest, NoQuery]) -> SignalAnswer:
    """Take the oldest signal of a name out of the mailbox of the job, and store it as a step.

    A repeated call gets the same signal.
    """
    workflows = WORKFLOWS.of(call.store)
    held, job = await held_lease(call, call.body)
    step = StepRecord(position=int(call.body.position), name=call.body.name, kind="signal")
    answer = await workflows.take_signal(held.holder(job), step, call.body.signal)
    _still_held(answer.lost)
    taken = answer.taken
    arrived = None if taken is None else Arrived(value=as_sent_or_none(taken.value))
    return SignalAnswer(signal=arrived, cancel=cancellation(job))


@routes.post(
    "/worker/spawn",
    role=Role.WORK,
    audited=False,
    errors=(ErrorCode.LEASE_LOST, ErrorCode.SPAWN_MISMATCH, ErrorCode.DUPLICATE, ErrorCode.UNSUPPORTED),
    example={**_LEASE, "jobs": [{"type": "add", "payload": {"a": 1, "b": 2}, "spawn_key": "first"}]},
)
async def spawn_jobs(call: Call[Spawn, NoQuery]) -> SpawnAnswer:
    """Enqueue jobs under the running one at once. A repeated call finds the jobs of the first one by their keys."""
    WORKFLOWS.of(call.store)
    held, job = await held_lease(call, call.body)
    new = [
        structs.replace(child(call, job, each, field=f"jobs[{place}]"), spawn_key=each.spawn_key)
        for place, each in enumerate(call.body.jobs)
    ]
    try:
        [accepted] = await call.service.app_state.submit([Submission(jobs=new, under=held.holder(job))])
    except LeaseLost as error:
        raise lease_lost(Loss(error.reason.upper())) from error
    except RopewalkError as error:
        raise submission_error(error) from error
    results = [submission_result(each, answer) for each, answer in zip(new, accepted, strict=True)]
    return SpawnAnswer(jobs=results, cancel=cancellation(job))


@routes.post(
    "/worker/once",
    role=Role.WORK,
    audited=False,
    errors=(ErrorCode.LEASE_LOST,),
    example={**_LEASE, "key": "mail-4711", "ttl": "PT24H"},
)
async def use_once(call: Call[OnceRequest, NoQuery]) -> OnceAnswer:
    """Take a key that only one attempt of any job gets within its time.

    Calls of the same attempt with the same key get the same answer, so that repeating a call is safe.
    """
    _, job = await held_lease(call, call.body)
    span = to_span(seconds(call.body.ttl, "ttl"), "ttl")
    first = await call.store.once(job.tenant, call.body.key, span, by=f"{job.id}:{job.fence}")
    return OnceAnswer(first=first, cancel=cancellation(job))


@routes.post("/worker/deregister", role=Role.WORK, audited=False, example={"worker_id": _WORKER})
async def deregister_worker(call: Call[WorkerCall, NoQuery]) -> None:
    """Forget a worker that has stopped. It releases its leases before; what it still holds runs out."""
    held = await held_by(call, call.body.worker_id)
    await call.store.unregister(held.card.id)


def _check_types(call: Call[Registration, NoQuery]) -> None:
    """Raises HttpError for a type that this server does not know, the token does not reach, or only Python can run."""
    registry = call.service.registry
    for place, name in enumerate(call.body.types):
        if name not in registry:
            raise invalid(registry.unknown(name), field=f"types[{place}]", code=DetailCode.UNKNOWN_TYPE)
        if call.identity.types is not None and name not in call.identity.types:
            raise HttpError(ErrorCode.FORBIDDEN, f"this token may not run jobs of type {name!r}")
        if registry.get(name).options.batch is not None:
            message = f"{name!r} is a batch type, which only workers in Python run"
            raise invalid(message, field=f"types[{place}]")


def _queues(call: Call[Registration, NoQuery]) -> tuple[str, ...] | None:
    """Returns the queues that the worker serves. Raises HttpError for one that the token does not reach."""
    reached = call.identity.queues
    if not call.body.queues:
        return None if reached is None else tuple(sorted(reached))
    for queue in call.body.queues:
        if reached is not None and queue not in reached:
            raise HttpError(ErrorCode.FORBIDDEN, f"this token may not take jobs from queue {queue!r}")
    return tuple(dict.fromkeys(call.body.queues))


def _still_held(lost: LossReason | None) -> None:
    if lost is not None:
        raise lease_lost(Loss.of(lost))
