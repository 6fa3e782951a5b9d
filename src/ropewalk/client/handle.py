"""`enqueue` returns an `Enqueuing`, which submits the job when it is awaited and gives a `Handle` of the durable job.

An `Enqueuing` that is never awaited enqueues nothing, so it warns when it is destroyed.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ropewalk.client.views.answers import CancelResult, SubmissionInfo
from ropewalk.client.views.jobs import JobInfo
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.jobs.flags import FORGOTTEN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import Seconds
from ropewalk.errors import InvalidInput, JobCancelled, JobFailed, NeverEnqueued, NotFound, StoreUnavailable
from ropewalk.observe.events import Event
from ropewalk.ports.store.submission import Accepted

if TYPE_CHECKING:
    from ropewalk.client.client import Client


_listeners: list[Callable[[str], object]] = []
"""The last of these functions is called with the message instead of a warning."""


def warn_never_awaited(name: str, file: str, line: int) -> None:
    """Warns that `enqueue(...)` in this line was never awaited."""
    message = f"enqueue({name}) at {file}:{line} was never awaited: nothing was queued"
    if _listeners:
        _listeners[-1](message)
    else:
        warnings.warn_explicit(NeverEnqueued(message), NeverEnqueued, file, line)


@contextmanager
def on_never_awaited(listener: Callable[[str], object]) -> Generator[None]:
    """Has a function called instead of warning. Tests use it, because nobody can catch an error raised in a
    destructor."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class Handle(Generic[S_co, G_co]):
    """A reference to a durable job. It is not awaitable, because there are several results: `result`, `group`,
    `chain`."""

    __slots__ = ("_accepted", "_client", "_is_type_known", "_job_type", "duplicate", "group_id", "id", "ignored")

    def __init__(
        self,
        client: Client,
        job_id: str,
        job_type: JobType[..., S_co, G_co] | None,
        *,
        accepted: Accepted | None = None,
        is_type_known: bool = True,
    ) -> None:
        self._client = client
        self._accepted = accepted
        self._job_type = job_type
        self._is_type_known = is_type_known
        """Whether the job is known to be of `job_type`. It is not known for a handle that was made from an id."""
        self.id = job_id
        self.group_id = job_id if accepted is None else accepted.group_id
        self.duplicate = accepted is not None and accepted.duplicate
        """Whether the job existed before the enqueue, which then changed nothing."""
        self.ignored: tuple[str, ...] = () if accepted is None else accepted.ignored
        """The names of the options in which the enqueue differed from the job that existed before. The job keeps its
        own."""

    def __repr__(self) -> str:
        return f"Handle({'?' if self._job_type is None else self._job_type.name} {self.id})"

    @property
    def submission(self) -> SubmissionInfo | None:
        """The answer of the store to the enqueue; None for a handle that `app.handle()` made."""
        return None if self._accepted is None else SubmissionInfo.of(self._accepted)

    async def result(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Waits until the job has completed and returns its result. Raises JobFailed, JobCancelled, WaitTimeout,
        NotFound.

        The result of a job that continued (`ctx.continue_with`) is that of the last job of its chain.
        """
        await self._look_at_type()
        job = await self._client.wait_for_record(self.id, timeout)
        if job.id == self.id:
            self._check_type(job.type)
        return result_of(job, self._decode)

    async def group(
        self,
        timeout: Seconds | None = None,  # noqa: ASYNC109 # part of the fixed API
        *,
        raise_on_failure: bool = False,
    ) -> G_co:
        """Waits until no job of the group is open and returns the value of the group.

        Raises GroupFailed if the group has no value, or, with raise_on_failure, if one of its jobs failed or was
        cancelled. Raises WaitTimeout and NotFound.
        """
        await self._look_at_type()
        value = await self._client.wait_for_group(self.group_id, timeout, raise_on_failure=raise_on_failure)
        return cast("G_co", value)

    async def chain(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Waits for the end of the chain and returns the result of its last job. Raises like result(), and NotFound if
        that job is gone."""
        await self._look_at_type()
        return result_of(await self._client.wait_for_chain(self.id, timeout), self._decode)

    async def _look_at_type(self) -> None:
        """Checks the type before a wait, which might never end for a job of another type. The wait itself raises any
        other error."""
        if self._is_type_known:
            return
        with suppress(NotFound, StoreUnavailable):
            self._check_type(await self._client.type_of(self.id))

    def _check_type(self, actual: str) -> None:
        if self._job_type is not None and actual != self._job_type.name:
            raise InvalidInput(
                f"job {self.id} is of type {actual!r}, and this handle was made for {self._job_type.name!r}: pass the "
                "type that the job has to handle()",
                field="job_type",
            )
        self._is_type_known = True

    def _decode(self, job: JobRecord) -> S_co:
        if self._job_type is not None and job.type == self._job_type.name:
            return self._job_type.decode_result(job.result)
        return cast("S_co", self._client.decode_result(job))

    async def status(self) -> JobInfo:
        """Returns the job as it is now. Raises NotFound."""
        return await self._client.get(self.id)

    async def cancel(self, *, reason: str | None = None, force: bool = False) -> CancelResult:
        """Cancels the job. For the options see `app.cancel`."""
        return await self._client.cancel(self.id, reason=reason, force=force)

    async def events(self) -> AsyncIterator[Event]:
        """Yields the events about this job that this process causes, from now on."""
        async for event in self._client.events():
            if event.job_id == self.id:
                yield event


class Enqueuing(Coroutine[Any, Any, Handle[S_co, G_co]], Generic[S_co, G_co]):
    """An enqueue that begins when it is awaited. Awaiting it again gives the same handle."""

    def __init__(
        self,
        submit: Coroutine[Any, Any, Handle[S_co, G_co]],
        job: Job[S_co, G_co],
        caller: tuple[str, int],
        *,
        shielded: bool = True,
    ) -> None:
        self._submit = submit
        self._shielded = shielded
        """Whether the submission goes on if the task that awaits it is cancelled."""
        self._job = job
        self._caller = caller
        self._started = False
        self._handle: asyncio.Future[Handle[S_co, G_co]] | None = None
        self._steps: Coroutine[Any, Any, Handle[S_co, G_co]] | None = None

    async def result(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Enqueues the job, waits for it and returns its result."""
        return await (await self).result(timeout)

    async def group(
        self,
        timeout: Seconds | None = None,  # noqa: ASYNC109 # part of the fixed API
        *,
        raise_on_failure: bool = False,
    ) -> G_co:
        """Enqueues the job, waits for its group and returns the value of the group."""
        return await (await self).group(timeout, raise_on_failure=raise_on_failure)

    async def chain(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Enqueues the job, waits for its chain and returns the result of the last job."""
        return await (await self).chain(timeout)

    def __await__(self) -> Generator[Any, Any, Handle[S_co, G_co]]:
        return self._once().__await__()

    async def _once(self) -> Handle[S_co, G_co]:
        if self._handle is None:
            self._started = True
            self._handle = asyncio.ensure_future(self._submit)
        return await (asyncio.shield(self._handle) if self._shielded else self._handle)

    # These methods make this a coroutine, for create_task, gather, wait_for and TaskGroup.

    def send(self, value: Any, /) -> Any:
        return self._driven().send(value)

    def throw(self, typ: Any, val: BaseException | object = None, tb: TracebackType | None = None, /) -> Any:
        if isinstance(typ, BaseException):
            return self._driven().throw(typ)
        return self._driven().throw(typ, val, tb)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()

    def _driven(self) -> Coroutine[Any, Any, Handle[S_co, G_co]]:
        if self._steps is None:
            self._steps = self._once()
        return self._steps

    def __del__(self) -> None:
        if self._started:
            return
        self._submit.close()
        if sys.is_finalizing():
            return
        warn_never_awaited(self._job.type.name, *self._caller)


def caller_of(depth: int) -> tuple[str, int]:
    """Returns file and line of the code that many calls above the caller of this function."""
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


def result_of(job: JobRecord, decode: Callable[[JobRecord], S]) -> S:
    """Returns the decoded result of a job that has ended. Raises the error that says how it ended otherwise."""
    match job.status:
        case Status.COMPLETED:
            if job.flags & FORGOTTEN:
                raise NotFound(
                    f"the result of job {job.id} ({job.type}) is gone: Retention.of(results=...) keeps results for a "
                    "shorter time than jobs"
                )
            return decode(job)
        case Status.CANCELLED:
            reason = job.cancel.reason if job.cancel is not None else None
            raise JobCancelled(f"job {job.id} ({job.type}) was cancelled: {reason or 'no reason given'}", job_id=job.id)
        case _:
            cause = "no error recorded" if job.error is None else f"{job.error.type or ''} {job.error.message}".strip()
            raise JobFailed(
                f"job {job.id} ({job.type}) ended as {job.status.value}: {cause}",
                job_id=job.id,
                state=job.status.value,
                error=job.error,
            )
