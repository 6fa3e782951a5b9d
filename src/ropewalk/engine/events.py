"""What happened, told after the commit to hooks and listeners. Nobody listening costs nothing; nobody can disturb."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.flags import SKIPPED
from ropewalk.domain.instants import Instant, to_datetime
from ropewalk.domain.job import JobRecord, NewJob
from ropewalk.domain.states import Move, Status
from ropewalk.ports.runtime import Runtime

logger = logging.getLogger("ropewalk")

EventKind: TypeAlias = Literal[
    "queued",
    "started",
    "progress",
    "deferred",
    "suspended",
    "succeeded",
    "failed",
    "expired",
    "cancelled",
    "reclaimed",
    "released",
    "dead_lettered",
    "lease_lost",
    "group_closed",
    "schedule_fired",
    "backlog",
    "backlog_over",
]


class Event(Struct, frozen=True, kw_only=True):
    """What happened to a job. `group_closed` is about the root of the group, `schedule_fired` about the job it made,
    `backlog` about the job that waited longest."""

    kind: EventKind
    job_id: str
    type: str
    queue: str
    tenant: str
    at: datetime
    attempt: int
    group_id: str
    will_retry: bool | None = None
    """of `failed`: whether another attempt follows"""
    error: ErrorInfo | None = None
    percent: float | None = None
    message: str | None = None
    worker: str | None = None
    skipped: bool = False
    """of `succeeded`: it never ran, because its dependencies failed and it asked to be passed over then"""
    schedule: str | None = None
    """of `schedule_fired`: its name"""
    fire_time: datetime | None = None
    """of `schedule_fired`: when it was due"""


EventHook: TypeAlias = Callable[[Event], Awaitable[object] | object]
ErrorHook: TypeAlias = Callable[[BaseException, str], object]

_KIND_OF_MOVE: dict[Move, EventKind] = {
    Move.COMPLETE: "succeeded",
    Move.RETRY: "failed",
    Move.FAIL: "failed",
    Move.BURY: "dead_lettered",
    Move.DEFER: "deferred",
    Move.SUSPEND: "suspended",
    Move.RELEASE: "released",
    Move.LOSE: "reclaimed",
    Move.EXPIRE: "expired",
    Move.CANCEL: "cancelled",
    Move.DOOM: "failed",
    Move.SKIP: "succeeded",
}
_WILL_RETRY: dict[Move, bool] = {Move.RETRY: True, Move.FAIL: False, Move.DOOM: False}


class EventHub:
    """Fans events out to the app's hook, the type's hook and the streams of this process."""

    def __init__(self, runtime: Runtime, *, on_event: EventHook | None, on_error: ErrorHook | None) -> None:
        self._runtime = runtime
        self._on_event = on_event
        self._on_error = on_error
        self._type_hooks: dict[str, EventHook] = {}
        self._streams: set[_Stream] = set()

    def hook_type(self, name: str, hook: EventHook) -> None:
        self._type_hooks[name] = hook

    def heard(self, job_type: str) -> bool:
        """Whether anybody would hear an event of this type: ask before building one."""
        return self._on_event is not None or bool(self._streams) or job_type in self._type_hooks

    def moved(self, job: JobRecord, move: Move, *, at: Instant, error: ErrorInfo | None = None) -> None:
        if self.heard(job.type):
            if move is Move.RESOLVE:
                move = Move.COMPLETE if job.status is Status.COMPLETED else Move.FAIL
            self.emit(event_of(job, _KIND_OF_MOVE[move], at=at, will_retry=_WILL_RETRY.get(move), error=error))

    def queued(self, new: NewJob, group_id: str) -> None:
        if self.heard(new.type):
            self.emit(
                Event(
                    kind="queued",
                    job_id=new.id,
                    type=new.type,
                    queue=new.queue,
                    tenant=new.tenant,
                    at=to_datetime(self._runtime.now()),
                    attempt=0,
                    group_id=group_id,
                )
            )

    @property
    def heard_at_all(self) -> bool:
        """Whether anybody listens to anything: ask before looking something up for an event."""
        return self._on_event is not None or bool(self._streams) or bool(self._type_hooks)

    def emit(self, event: Event) -> None:
        for hook in (self._on_event, self._type_hooks.get(event.type)):
            if hook is not None:
                self._call(hook, event)
        for stream in list(self._streams):
            stream.put(event)

    async def stream(self) -> AsyncIterator[Event]:
        """Events of this process, from now on. A reader that falls 10 000 behind loses the oldest."""
        stream = _Stream(10_000)
        self._streams.add(stream)
        try:
            while True:
                yield await stream.get()
        finally:
            self._streams.discard(stream)

    def report(self, error: BaseException, phase: str) -> None:
        """An error that must not disturb: to on_error, else to the log."""
        if self._on_error is None:
            logger.error("error in %s: %s", phase, error, exc_info=error)
            return
        try:
            self._on_error(error, phase)
        except Exception:
            logger.exception("on_error raised while reporting %r of %s", error, phase)

    def _call(self, hook: EventHook, event: Event) -> None:
        try:
            answer = hook(event)
            if inspect.isawaitable(answer):
                self._runtime.spawn(self._finish(answer), name="ropewalk-hook")
        except Exception as error:
            self.report(error, "on_event")

    async def _finish(self, answer: Awaitable[object]) -> None:
        try:
            await answer
        except Exception as error:
            self.report(error, "on_event")


class _Stream:
    """A bounded mailbox between any thread and one reader's loop."""

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._limit = limit

    def put(self, event: Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, event)

    async def get(self) -> Event:
        return await self._queue.get()

    def _put(self, event: Event) -> None:
        if self._queue.qsize() >= self._limit:
            self._queue.get_nowait()
        self._queue.put_nowait(event)


def event_of(
    job: JobRecord,
    kind: EventKind,
    *,
    at: Instant,
    will_retry: bool | None = None,
    error: ErrorInfo | None = None,
    percent: float | None = None,
    message: str | None = None,
) -> Event:
    return Event(
        kind=kind,
        job_id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        at=to_datetime(at),
        attempt=job.attempt,
        group_id=job.group_id or job.id,
        will_retry=will_retry,
        error=error,
        percent=percent,
        message=message,
        worker=job.owner,
        skipped=kind == "succeeded" and bool(job.flags & SKIPPED),
    )
