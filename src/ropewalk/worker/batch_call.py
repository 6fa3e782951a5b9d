"""One handler call for many attempts. It knows which of them still matter; the call ends early only when none does."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.batch_decorator import argument_of, item_of, outcomes_of_batch
from ropewalk.definitions.results.classify import bad_input
from ropewalk.domain.jobs.outcome import Completed, Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.context import Workbench
from ropewalk.worker.folding import pending_fold
from ropewalk.worker.handler_call import dependencies_loaded

if TYPE_CHECKING:
    from ropewalk.worker.executor import Executor


class BatchCall:
    """A Stoppable (by shape): what each of its attempts runs on."""

    def __init__(self, attempts: list[Attempt], slot: asyncio.Task[Any], bench: Workbench, executor: Executor) -> None:
        self.attempts = attempts
        self.cancelled = False
        """every attempt was stopped, and the slot with them"""
        self._slot = slot
        self._bench = bench
        self._executor = executor

    def cancel(self) -> None:
        """One of the attempts was stopped."""
        if not self.cancelled and all(each.stopped is not None for each in self.attempts):
            self.cancelled = True
            self._slot.cancel()

    async def run(self) -> list[Outcome]:
        """An outcome for each attempt, in order. Raises what the handler raises."""
        refused: dict[Attempt, Outcome] = {}
        items: dict[Attempt, object] = {}
        for attempt in self.attempts:
            if attempt.job.gate is not None and not await dependencies_loaded(attempt, self._bench):
                refused[attempt] = Released(SECOND)
                continue
            try:
                items[attempt] = item_of(attempt.job_type, attempt.job.input)
            except InvalidInput as error:
                refused[attempt] = bad_input(error)
        outcomes = dict(zip(items, await self._call(list(items), list(items.values())), strict=True))
        return [refused.get(each) or outcomes[each] for each in self.attempts]

    async def _call(self, attempts: Sequence[Attempt], items: list[object]) -> list[Outcome]:
        if not attempts:
            return []
        job_type, bench = attempts[0].job_type, self._bench
        contexts = [Context(attempt) for attempt in attempts]
        for context in contexts:
            context.join(tuple(contexts))
        call = functools.partial(job_type.handler, argument_of(job_type, items, contexts))
        inside = call if job_type.style == "async" else lambda: self._executor.in_thread(self.attempts, call)
        onion = self._executor.onions.get(job_type.name)
        value = await (inside() if onion is None else onion.run(contexts[0], inside))
        outcomes = outcomes_of_batch(
            job_type,
            contexts,
            value,
            bench.limits,
            strict=bench.defaults.strict_return,
            judge=lambda error: bench.verdict(error, job_type),
        )
        for attempt, outcome, output in zip(attempts, outcomes, _outputs(value), strict=False):
            if isinstance(outcome, Completed) and outcome.sequel is not None:
                attempt.fold = pending_fold(output)
        return outcomes


def _outputs(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, Sequence) else ()
