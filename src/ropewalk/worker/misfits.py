"""Jobs whose arguments the code of this worker cannot read. Such a job is given back while another live worker may be
able to read them; otherwise it fails.
"""

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

IGNORED_SECONDS: Final = 10.0
"""A refused job is ready again for other workers after its delay; this worker does not claim it for this much
longer."""


class Misfits:
    """The jobs that one worker could not read and leaves to others for a while."""

    def __init__(self, worker_context: WorkerContext) -> None:
        self._worker_context = worker_context
        self._left_to_others: dict[int, float] = {}
        """By seq: until when the job is not claimed here again."""

    async def judge(self, attempt: Attempt, outcome: Misfit) -> Misfit | Released:
        """Returns the outcome of a misfit: it fails, or it is given back because another worker may fit. If the store
        is away, so that this cannot be known, the job is given back, too."""
        worker_context, job = self._worker_context, attempt.job
        try:
            now = await worker_context.store.clock()
            refusals = refused(job.error, worker_context.owner, now)
            hopeless = refusals.too_many(now) or not await self._others(job, refusals)
        except RopewalkError:
            return Released(SECOND)
        if hopeless:
            return outcome
        until = worker_context.runtime.monotonic() + refusals.delay_us / SECOND + IGNORED_SECONDS
        self._left_to_others[job.seq] = until
        return Misfit(refusals.recorded_in(outcome.error), delay_us=refusals.delay_us)

    def ignored(self) -> frozenset[int]:
        """Returns the jobs that claims of this worker ignore for now, to leave them to others."""
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
