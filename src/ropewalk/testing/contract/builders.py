"""Builders of jobs, gates, claims, settlements and worker cards, with plain values for what a test leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.flags import settles_alone
from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord, KeyScope, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND, Span
from ropewalk.domain.workflow.dependency import NamedCondition, NewGate, Of, ParentKind, ParentRef, needed
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.leases import WorkerCard

LEASE: Span = 30 * SECOND
"""The lease of every claim that names no other."""
ALL_TYPES = ("t", "a", "b", "undo")
"""The job types that a claim serves unless it names others."""

BOOM = ErrorInfo(category=Category.TEMPORARY, message="boom", code="boom", type="Boom")

_numbers = count(1)


def new_job(type: str = "t", **fields: Any) -> NewJob:  # noqa: A002  the field's name
    """Build a job of this type, with an unused id (`job-17`) unless `id` is given."""
    fields.setdefault("id", f"job-{next(_numbers)}")
    fields.setdefault("input", b"{}")
    return NewJob(type=type, **fields)


def keyed(key: str, *, scope: KeyScope = "open", window: float = 86_400, **fields: Any) -> NewJob:
    """Build a job with an idempotency key whose window is `window` seconds."""
    return new_job(key=IdempotencyKey(key=key, scope=scope, window_us=round(window * SECOND)), **fields)


def gate_on(*parents: str | ParentRef, when: NamedCondition | tuple[int, Of] = "all_success", **fields: Any) -> NewGate:
    """Build a gate over these parents; a plain id means the job alone, `tree` and `chain` make other references."""
    need, of = needed(when, len(parents)) if isinstance(when, str) else when
    refs = tuple(ParentRef(ParentKind.JOB, each) if isinstance(each, str) else each for each in parents)
    return NewGate(parents=refs, need=need, of=of, **fields)


def tree(job_id: str) -> ParentRef:
    """Refer to a job with everything queued under it, as a parent of a gate."""
    return ParentRef(ParentKind.TREE, job_id)


def chain(job_id: str) -> ParentRef:
    """Refer to the chain that this job belongs to, as a parent of a gate."""
    return ParentRef(ParentKind.CHAIN, job_id)


def claim_request(
    *,
    owner: str = "worker",
    types: Iterable[str] = ALL_TYPES,
    lease_us: Mapping[str, Span] | None = None,
    limit: int = 1,
    slots: int | None = None,
    first_ticket: int = 1,
    started_upto: int | None = None,
    **fields: Any,
) -> ClaimRequest:
    """Build a claim that can start everything it asks for, unless `slots` or `started_upto` say otherwise."""
    leases = dict.fromkeys(types, LEASE) if lease_us is None else lease_us
    return ClaimRequest(
        owner=owner,
        types=leases,
        limit=limit,
        slots=limit if slots is None else slots,
        first_ticket=first_ticket,
        started_upto=first_ticket + limit - 1 if started_upto is None else started_upto,
        **fields,
    )


def settlement(job: JobRecord, move: Move = Move.COMPLETE, **fields: Any) -> Settlement:
    """Build a settlement of the lease that the record `job` names, as its worker would send it."""
    fields.setdefault("alone", settles_alone(job.flags))
    return Settlement(seq=job.seq, fence=job.fence, move=move, **fields)


def worker_card(owner: str = "worker", **fields: Any) -> WorkerCard:
    """Build the card under which a worker registers."""
    plain: dict[str, Any] = {
        "host": "h",
        "pid": 1,
        "types": ALL_TYPES,
        "queues": None,
        "tenants": None,
        "concurrency": 10,
    }
    return WorkerCard(id=owner, **(plain | fields))
