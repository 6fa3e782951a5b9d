"""Jobs whose arguments this worker's code cannot read: given back while another live worker might, failed otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ropewalk.domain.jobs.misfit import Refusals, refused
from ropewalk.domain.jobs.outcome import Misfit, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import RopewalkError
from ropewalk.observe.why_inputs import is_alive, serves

if TYPE_CHECKING:
    from ropewalk.domain.jobs.record import JobRecord
    from ropewalk.worker.attempt import Attempt
    from ropewalk.worker.context import WorkerContext

PASSED_OVER_SECONDS: Final = 10.0
"""How much longer than its delay a refused job is left to other workers."""


class Misfits:
    """The refused jobs of one worker."""

    def __init__(self, worker_context: WorkerContext) -> None:
        self._worker_context = worker_context
        self._left_to_others: dict[int, float] = {}
        """By seq: until when the job is not claimed here again."""

    async def judge(self, attempt: Attempt, outcome: Misfit) -> Misfit | Released:
        """Whether the job fails for good. It is given back where nobody knows, because the store is away."""
        worker_context, job = self._worker_context, attempt.job
        try:
            now = await worker_context.store.clock()
            refusals = refused(job.error, worker_context.owner, now)
            hopeless = refusals.too_many(now) or not await self._others(job, refusals)
        except RopewalkError:
            return Released(SECOND)
        if hopeless:
            return outcome
        until = worker_context.runtime.monotonic() + refusals.delay_us / SECOND + PASSED_OVER_SECONDS
        self._left_to_others[job.seq] = until
        return Misfit(refusals.told(outcome.error), delay_us=refusals.delay_us)

    def passing(self) -> frozenset[int]:
        """Jobs that this worker leaves to others for now."""
        if not self._left_to_others:
            return frozenset()
        now = self._worker_context.runtime.monotonic()
        self._left_to_others = {seq: until for seq, until in self._left_to_others.items() if until > now}
        return frozenset(self._left_to_others)

    async def _others(self, job: JobRecord, refusals: Refusals) -> bool:
        """Whether a live worker serves this job that has not refused it."""
        store = self._worker_context.store
        cards, now = await store.workers(), await store.clock()
        live = (card for card in cards if is_alive(card, now) and serves(card, job.lane))
        return any(card.id not in refusals.workers for card in live)
