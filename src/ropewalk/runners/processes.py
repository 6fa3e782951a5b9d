"""The pool of the processes in which a worker runs handlers with `executor="process"`.

A process is started when it is needed, runs one attempt after another, and is killed when an attempt must stop, because
nothing else ends a handler that ignores its cancellation. The pool knows no store: what a handler asks for goes to its
attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import structs

from ropewalk.definitions.context.attempt_port import AttemptPort, Isolation
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.outcome import Crashed, Outcome, Released
from ropewalk.domain.time import SECOND
from ropewalk.errors import DefinitionError
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.workflows import Dependency
from ropewalk.runners import memory
from ropewalk.runners.conversation import Conversation, Reporter
from ropewalk.runners.frames import InvalidMessage, frame_bytes_max
from ropewalk.runners.handler_process import HandlerProcess
from ropewalk.runners.messages import Run
from ropewalk.runners.source import APP_DECIDE, Source, classifier_source, handler_not_found, source_of

STARTING: Final = "start of a handler's process"
"""The name of what failed, in reports of processes that did not start."""

NOT_STARTED: Final = Released(delay_us=SECOND)
"""The outcome when no process could be started: the attempt is given back, for another worker or for later."""


class ProcessPool(Isolation):
    """The processes of one worker, at most `size` of them.

    The pool is made and used on one event loop. Its processes end with the thread of that loop at the latest.
    """

    def __init__(
        self,
        *,
        size: int,
        bounds: Bounds,
        defaults: AppDefaults,
        runtime: Runtime,
        report: Reporter,
        logs: Logs | None = None,
    ) -> None:
        self._logs = logs or Logs()
        self._bounds = bounds
        self._defaults = structs.replace(defaults, decide=None)
        self._decide = defaults.decide
        self._runtime = runtime
        self._report = report
        self._size = size
        self._free_slots = asyncio.Semaphore(size)
        self._starting = asyncio.Lock()
        """Held while a process starts, so that `close` knows of every process."""
        self._idle: list[HandlerProcess] = []
        self._processes: set[HandlerProcess] = set()
        self._closed = False

    async def run(self, attempt: AttemptPort) -> Outcome:
        try:
            request = self._request(attempt)
        except DefinitionError as error:
            return handler_not_found(error)
        async with self._free_slots:
            while (process := await self._acquire(request.memory_mb)) is not None:
                first, process.fresh = process.fresh, False
                outcome = await self._serve(process, attempt, request)
                if outcome is not None:
                    return outcome
                if first:
                    self._report(RuntimeError(f"it {process.lifetime.exit_in_words()} at once"), STARTING)
                    break
            return Released() if self._closed else NOT_STARTED

    async def close(self) -> None:
        self._closed = True
        async with self._starting:
            processes = list(self._processes)
        await asyncio.gather(*(self._end(process) for process in processes))

    def _request(self, attempt: AttemptPort) -> Run:
        return Run(
            job=attempt.job,
            source=source_of(attempt.job_type),
            bounds=self._bounds,
            defaults=self._defaults,
            idempotency_key=attempt.idempotency_key,
            now=attempt.now(),
            dependencies=list(attempt.dependencies()),
            types=_types(attempt),
            memory_mb=attempt.job_type.options.memory_mb,
            decide=self._classifier,
            logs=self._logs,
        )

    @cached_property
    def _classifier(self) -> Source | None:
        """Where the app's classifier is defined. One that cannot be found is reported once, on first use."""
        if self._decide is None:
            return None
        try:
            return classifier_source(self._decide)
        except DefinitionError as error:
            self._report(error, APP_DECIDE)
            return None

    async def _acquire(self, memory_mb: int | None) -> HandlerProcess | None:
        """An idle process with this memory bound, or a new one; None if the pool is closed or none could be started."""
        while (
            process := next((each for each in reversed(self._idle) if each.memory_mb == memory_mb), None)
        ) is not None:
            self._idle.remove(process)
            if not process.lifetime.ended:
                return process
            await self._end(process)
        async with self._starting:
            if len(self._processes) >= self._size and self._idle:
                await self._end(self._idle.pop(0))  # it has another memory bound
            return None if self._closed else await self._start(memory_mb)

    async def _start(self, memory_mb: int | None) -> HandlerProcess | None:
        try:
            process = await HandlerProcess.start(frame_bytes_max(self._bounds))
        except OSError as error:
            self._report(error, STARTING)
            return None
        process.memory_mb = memory_mb
        self._processes.add(process)
        return process

    async def _serve(self, process: HandlerProcess, attempt: AttemptPort, request: Run) -> Outcome | None:
        """Run the attempt in this process; return None if the process ended before the handler began.

        Raises CancelledError when the worker stops the attempt, and kills the process.
        """
        conversation = Conversation(process, attempt, self._runtime, self._report)
        fault: str | None = None
        outcome: Outcome | None = None
        try:
            outcome = await conversation.run(request)
        except InvalidMessage as error:
            fault = f"was killed because it {error}"
        finally:
            if outcome is None:
                await self._end(process)
        if outcome is not None:
            await self._keep_or_end(process, outcome)
            return outcome
        if self._closed:
            return Released()
        if not conversation.began:
            return None
        if request.memory_mb is not None and process.lifetime.code == memory.EXIT_CODE:
            return memory.exceeded_silently(request.memory_mb)
        return _crashed(fault or process.lifetime.exit_in_words())

    async def _keep_or_end(self, process: HandlerProcess, outcome: Outcome) -> None:
        if memory.was_exceeded(outcome):
            await self._end(process)
        else:
            self._idle.append(process)

    async def _end(self, process: HandlerProcess) -> None:
        await process.kill()
        self._processes.discard(process)


def _types(attempt: AttemptPort) -> dict[str, Source]:
    """Where the types are defined of the jobs that it depends on, and of those that contributed to such a group.

    A type that only this process can find is left out.
    """
    sources: dict[str, Source] = {}
    for name in {name for each in attempt.dependencies() for name in _types_of(each)}:
        known = attempt.known_type(name)
        if known is not None:
            with contextlib.suppress(DefinitionError):
                sources[name] = source_of(known)
    return sources


def _types_of(dependency: Dependency) -> Iterator[str]:
    if dependency.job is not None:
        yield dependency.job.type
    if dependency.group is not None:
        yield dependency.group.value.type
    yield from (each.type for each in dependency.contributions)


def _crashed(how: str) -> Outcome:
    message = f"the handler's process {how}"
    return Crashed(ErrorInfo(category=Category.WORKER_LOST, code="process_died", message=message))
