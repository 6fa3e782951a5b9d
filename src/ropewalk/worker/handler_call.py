"""How the handlers of one job type are called, whatever style they are of: put together once for the type."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.context.current import activate, deactivate
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.classify import bad_input
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain.jobs.outcome import Completed, Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput, StoreUnavailable
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.context import Workbench
from ropewalk.worker.folding import pending_fold
from ropewalk.worker.isolated_call import Isolated
from ropewalk.worker.middleware_chain import Onion

InThread: TypeAlias = Callable[[Sequence[Attempt], Callable[[], object]], Coroutine[Any, Any, object]]


class Handling:
    def __init__(
        self, job_type: JobType[..., Any, Any], onion: Onion | None, bench: Workbench, in_thread: InThread
    ) -> None:
        contract = job_type.resolve()
        self._job_type = job_type
        self._onion = onion
        self._bench = bench
        self._in_thread = in_thread
        self._isolated = job_type.style == "process" and onion is None
        self._plain = job_type.style == "async" and onion is None
        self._handler = job_type.handler
        self._takes_context = contract.takes_context
        self._decode = contract.arguments.decode

    async def call(self, attempt: Attempt) -> Outcome:
        if attempt.job.gate is not None and not await dependencies_loaded(attempt, self._bench):
            return Released(SECOND)
        if self._isolated:
            return await self._bench.isolation.run(attempt)
        try:
            arguments = self._decode(attempt.job.input)
        except InvalidInput as error:
            return bad_input(error)
        context = Context(attempt)
        token = activate(context)
        try:
            if not self._plain:
                return await self._within(attempt, context, arguments)
            # Most of them: here and not one coroutine further in.
            value = await (self._handler(context, **arguments) if self._takes_context else self._handler(**arguments))
        finally:
            deactivate(token)
        return self._returned(attempt, context, value)

    def _returned(self, attempt: Attempt, context: Context, value: object) -> Outcome:
        bench = self._bench
        outcome = outcome_of_return(self._job_type, context, value, bench.limits, strict=bench.defaults.strict_return)
        if isinstance(outcome, Completed) and outcome.sequel is not None:
            attempt.fold = pending_fold(value)
        return outcome

    async def _within(self, attempt: Attempt, context: Context, arguments: dict[str, object]) -> Outcome:
        """A thread, or middlewares around whatever it is."""
        style, onion = self._job_type.style, self._onion
        call = functools.partial(self._handler, *((context,) if self._takes_context else ()), **arguments)
        if onion is None:
            value = await self._in_thread([attempt], call)
        elif style == "process":
            outcome, value = await Isolated(attempt, context, self._bench.isolation).run(onion)
            if outcome is not None:
                return outcome
        elif style == "async":
            value = await onion.run(context, call)
        else:
            value = await onion.run(context, lambda: self._in_thread([attempt], call))
        return self._returned(attempt, context, value)


async def dependencies_loaded(attempt: Attempt, bench: Workbench) -> bool:
    """The handler has not begun: with the store away the attempt is given back rather than burned."""
    try:
        await attempt.load_dependencies()
    except StoreUnavailable as error:
        bench.events.report(error, "dependencies")
        return False
    return True
