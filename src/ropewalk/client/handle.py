"""What an enqueue gives back: lazily (`Enqueuing`) and once the job is durable (`Handle`).

Enqueues that were built and never awaited: a warning, or whoever listens hears of it.
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


def warn_never_awaited(name: str, file: str, line: int) -> None:
    message = f"enqueue({name}) at {file}:{line} was never awaited: nothing was queued"
    if _listeners:
        _listeners[-1](message)
    else:
        warnings.warn_explicit(NeverEnqueued(message), NeverEnqueued, file, line)


@contextmanager
def on_never_awaited(listener: Callable[[str], object]) -> Generator[None]:
    """Listen instead of warning: an error raised from a destructor would reach nobody."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class Handle(Generic[S_co, G_co]):
    """A durable job. Not awaitable: say which result you mean."""

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
        """False while nobody has looked whether the job is of this type."""
        self.id = job_id
        self.group_id = job_id if accepted is None else accepted.group_id
        self.duplicate = accepted is not None and accepted.duplicate
        """the enqueue found this job already there"""
        self.ignored: tuple[str, ...] = () if accepted is None else accepted.ignored
        """of a duplicate: names of the options in which the enqueue differed from the job, which keeps its own"""

    def __repr__(self) -> str:
        return f"Handle({'?' if self._job_type is None else self._job_type.name} {self.id})"

    @property
    def submission(self) -> SubmissionInfo | None:
        """What the store answered to the enqueue. None for a handle that `app.handle()` made."""
        return None if self._accepted is None else SubmissionInfo.of(self._accepted)

    async def result(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """The job's own result once it completed. Raises JobFailed, JobCancelled, WaitTimeout, NotFound.

        One that continued (`ctx.continue_with`) leaves its result to the last of its chain.
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
        """The value of its group once nothing in it is open.

        Raises GroupFailed where the value cannot be told, and with raise_on_failure where a job of it failed or was
        cancelled; WaitTimeout, NotFound.
        """
        await self._look_at_type()
        value = await self._client.wait_for_group(self.group_id, timeout, raise_on_failure=raise_on_failure)
        return cast("G_co", value)

    async def chain(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """The result of the last job of its chain. Raises like result(), and NotFound where that job is gone."""
        await self._look_at_type()
        return result_of(await self._client.wait_for_chain(self.id, timeout), self._decode)

    async def _look_at_type(self) -> None:
        """Before a wait, which may never end for a job of another type. What else is wrong, the wait itself says."""
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
        return await self._client.get(self.id)

    async def cancel(self, *, reason: str | None = None, force: bool = False) -> CancelResult:
        return await self._client.cancel(self.id, reason=reason, force=force)

    async def events(self) -> AsyncIterator[Event]:
        """Events of this job, as this process causes them."""
        async for event in self._client.events():
            if event.job_id == self.id:
                yield event


class Enqueuing(Coroutine[Any, Any, Handle[S_co, G_co]], Generic[S_co, G_co]):
    """Nothing happens until it is awaited; awaiting again gives the same handle."""

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
        """whether it goes on when whoever awaits it is cancelled"""
        self._job = job
        self._caller = caller
        self._started = False
        self._handle: asyncio.Future[Handle[S_co, G_co]] | None = None
        self._steps: Coroutine[Any, Any, Handle[S_co, G_co]] | None = None

    async def result(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Enqueue and wait for the job's own result."""
        return await (await self).result(timeout)

    async def group(
        self,
        timeout: Seconds | None = None,  # noqa: ASYNC109 # part of the fixed API
        *,
        raise_on_failure: bool = False,
    ) -> G_co:
        """Enqueue and wait for the value of its group."""
        return await (await self).group(timeout, raise_on_failure=raise_on_failure)

    async def chain(self, timeout: Seconds | None = None) -> S_co:  # noqa: ASYNC109 # part of the fixed API
        """Enqueue and wait for the result of the last job of its chain."""
        return await (await self).chain(timeout)

    def __await__(self) -> Generator[Any, Any, Handle[S_co, G_co]]:
        return self._once().__await__()

    async def _once(self) -> Handle[S_co, G_co]:
        if self._handle is None:
            self._started = True
            self._handle = asyncio.ensure_future(self._submit)
        return await (asyncio.shield(self._handle) if self._shielded else self._handle)

    # A coroutine for create_task, gather, wait_for and TaskGroup: driven like the one behind __await__.

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
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


def result_of(job: JobRecord, decode: Callable[[JobRecord], S]) -> S:
    """The decoded result of a finished job, or the error that says how it ended."""
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
            told = "no error recorded" if job.error is None else f"{job.error.type or ''} {job.error.message}".strip()
            raise JobFailed(
                f"job {job.id} ({job.type}) ended as {job.status.value}: {told}",
                job_id=job.id,
                state=job.status.value,
                error=job.error,
            )
