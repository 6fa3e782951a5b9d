"""Steps and signals: what a handler keeps of itself between attempts, and what is sent to it from outside."""

from __future__ import annotations

from msgspec import structs

from ropewalk.backends.memory.tables import Tables
from ropewalk.backends.memory.unit_of_work import MemoryLedger
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.ports.store.messages import Holder, SignalAnswer, StepAnswer


def signal(tables: Tables, tenant: str, job_id: str, name: str, value: bytes | None, *, now: Instant) -> SignalAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return SignalAnswer.NOT_FOUND
    if job.terminal:
        return SignalAnswer.ALREADY_COMPLETE
    tables.mailbox.post(job.seq, name, value)
    ledger = MemoryLedger(tables, now)
    ledger.take(job)
    delivered = gate.signalled(job, name, now)
    ledger.flush()
    return SignalAnswer.DELIVERED if delivered else SignalAnswer.KEPT


def record_step(tables: Tables, holder: Holder, step: StepRecord) -> StepAnswer:
    lost = _loss(tables, holder)
    if lost is not None:
        return StepAnswer(lost=lost)
    held = tables.mailbox.step(holder.seq, step.position)
    if held is None or not held.finished:
        _keep(tables, holder, step)
    return StepAnswer()


def take_signal(tables: Tables, holder: Holder, step: StepRecord, name: str) -> StepAnswer:
    lost = _loss(tables, holder)
    if lost is not None:
        return StepAnswer(lost=lost)
    held = tables.mailbox.step(holder.seq, step.position)
    if held is not None and held.finished:
        return StepAnswer(taken=held)  # asked again because the answer was lost: one wait takes one signal
    if not tables.mailbox.holds(holder.seq, name):
        return StepAnswer()
    taken = structs.replace(step, value=tables.mailbox.take(holder.seq, name), finished=True)
    _keep(tables, holder, taken)
    return StepAnswer(taken=taken)


def _loss(tables: Tables, holder: Holder) -> LossReason | None:
    return loss_reason(tables.jobs.get(holder.seq), holder.fence, holder.owner)


def _keep(tables: Tables, holder: Holder, step: StepRecord) -> None:
    tables.mailbox.keep(holder.seq, step)
    tables.jobs[holder.seq].flags |= STEPPED
