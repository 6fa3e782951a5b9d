"""Settles the outcomes of remote workers, as the settler of a local worker does: many in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ropewalk.domain.jobs import retry
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import AttemptTiming, Settlement, decide
from ropewalk.errors import RopewalkError, StoreUnavailable
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import HttpError
from ropewalk.http.jobs.submission import submission_error
from ropewalk.http.remote_workers import outcome_shapes as wire
from ropewalk.http.remote_workers.held import Held, held_by, loss_reasons
from ropewalk.http.remote_workers.outcome_shapes import Settle, SettleAnswer, SettledOutcome
from ropewalk.http.remote_workers.outcomes import outcome_of
from ropewalk.http.remote_workers.shapes import Loss
from ropewalk.http.service import Service
from ropewalk.http.wire import JobState
from ropewalk.observe.publish import Change, publish
from ropewalk.ports.store.leases import Settled
from ropewalk.worker.completion import written_with
from ropewalk.worker.settler import settled_change, with_custom_backoff

Ended: TypeAlias = "tuple[JobRecord, Outcome, AttemptTiming | None]"
"""An attempt that has ended, with its outcome and its timing."""


async def settle(call: Call[Settle, NoQuery]) -> SettleAnswer:
    """Settles each outcome whose lease the worker holds."""
    held = await held_by(call, call.body.worker_id)
    answers: dict[int, SettledOutcome] = {}
    ended: list[Ended] = []
    places: list[int] = []
    lost: list[int] = []
    for place, sent in enumerate(call.body.outcomes):
        job = held.job(sent.job_id, sent.fence)
        if job is None:
            lost.append(place)
            continue
        try:
            outcome = await outcome_of(call, held, job, sent)
        except StoreUnavailable:
            raise
        except (RopewalkError, HttpError) as error:
            answers[place] = _refused(call, sent, error)
            continue
        ended.append((job, outcome, _timing(sent)))
        places.append(place)
    settled = await settle_jobs(call.service, held, ended) if ended else []
    for place, (job, _, _), answer in zip(places, ended, settled, strict=True):
        answers[place] = _answered(call, held, job, answer)
    outcomes = call.body.outcomes
    reasons = await loss_reasons(call, held, [(outcomes[place].job_id, outcomes[place].fence) for place in lost])
    for place in lost:
        sent = outcomes[place]
        reason = reasons[sent.job_id, sent.fence]
        answers[place] = SettledOutcome(job_id=sent.job_id, fence=sent.fence, accepted=False, state=None, reason=reason)
    return SettleAnswer(outcomes=[answers[place] for place in range(len(outcomes))])


async def settle_jobs(service: Service, held: Held, ended: Sequence[Ended]) -> list[Settled]:
    """Settles attempts in one commit, and publishes what became of them."""
    app_state = service.app_state
    settlements = [_settlement(service, *each) for each in ended]
    answers = await app_state.store.settle(held.card.id, settlements)
    changes: list[Change] = []
    queued: list[NewJob] = []
    freed: set[str] = set()
    for (job, _, _), settlement, answer in zip(ended, settlements, answers.settled, strict=True):
        if answer.move is None or answer.refused is not None:
            continue
        if answer.job is None:
            changes.append(Change(job, answer.move, settlement.error))
        else:
            changes.append(settled_change(settlement, answer.move, answer.job))
        if job.limit_key is not None:
            freed.add(job.queue)
        if settlement.plan is not None and answer.move is Move.COMPLETE:
            queued += written_with(settlement.plan)
    publish(
        changes,
        store=app_state.store,
        events=app_state.events,
        runtime=app_state.runtime,
        consequences=answers.consequences,
        queued=queued,
        freed=freed,
    )
    return answers.settled


def _settlement(service: Service, job: JobRecord, outcome: Outcome, timing: AttemptTiming | None) -> Settlement:
    app_state, job_type = service.app_state, service.registry.get(job.type)
    outcome = with_custom_backoff(outcome, job, job_type, app_state.events)
    backoff = retry.resolve(job.backoff, job_type.options.backoff, app_state.defaults.backoff)
    return decide(job, outcome, backoff, app_state.runtime.random(), timing)


def _timing(sent: wire.Outcome) -> AttemptTiming | None:
    """A remote worker starts what it claims at once, so the job did not wait in it."""
    return AttemptTiming(0, int(sent.duration_ms) * 1000) if isinstance(sent.duration_ms, int | float) else None


def _answered(call: Call[Any, Any], held: Held, job: JobRecord, answer: Settled) -> SettledOutcome:
    job_id, fence = job.id, str(job.fence)
    if answer.refused is not None:
        error = submission_error(answer.refused).body(call.request.id)
        return SettledOutcome(job_id=job_id, fence=fence, accepted=False, state=None, error=error)
    if answer.move is None:
        reason = Loss.NOT_FOUND if answer.lost is None else Loss.of(answer.lost)
        return SettledOutcome(job_id=job_id, fence=fence, accepted=False, state=None, reason=reason)
    state = JobState.COMPLETED if answer.job is None else JobState.of(answer.job.state_at(held.now))
    return SettledOutcome(job_id=job_id, fence=fence, accepted=True, state=state)


def _refused(call: Call[Any, Any], sent: wire.Outcome, error: RopewalkError | HttpError) -> SettledOutcome:
    refusal = error if isinstance(error, HttpError) else submission_error(error)
    body = refusal.body(call.request.id)
    return SettledOutcome(job_id=sent.job_id, fence=sent.fence, accepted=False, state=None, error=body)
