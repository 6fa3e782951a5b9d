"""What happened, told after the commit to hooks and listeners. Nobody listening costs nothing; nobody can disturb."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct, structs

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.shown_errors import safe_error_text, shown_error
from ropewalk.domain.time import Instant, to_datetime
from ropewalk.domain.user_calls import as_error, guarded, guarded_await
from ropewalk.errors import StoreUnavailable
from ropewalk.observe.event_stream import EventStream
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.submission import Accepted

if TYPE_CHECKING:
    from ropewalk.observe.metrics.meter import Meter
    from ropewalk.observe.publish import Change

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


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """What happened to a job. `group_closed` is about the root of the group, `schedule_fired` about the job it made,
    `backlog` about the job that waited longest."""

    kind: EventKind
    job_id: str
    type: str
    queue: str
    tenant: str
    at_us: Instant
    """when, in µs since 1970 (UTC); `at` is the same as a datetime"""
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

    @property
    def at(self) -> datetime:
        """Made when asked for: it takes as long as telling a hook does, and most hooks do not look."""
        return to_datetime(self.at_us)

    def __repr__(self) -> str:
        names = ["at" if name == "at_us" else name for name in self.__struct_fields__]
        return f"Event({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


Queued: TypeAlias = tuple[NewJob, str]
"""a job that is new to the store, and its group"""
EventHook: TypeAlias = Callable[[Event], Awaitable[object] | object]
ErrorHook: TypeAlias = Callable[[BaseException, str], object]

_KIND_OF_MOVE: dict[Move, EventKind] = {
    Move.COMPLETE: "succeeded",
    Move.RETRY: "failed",
    Move.FAIL: "failed",
    Move.BURY: "dead_lettered",
    Move.SET_ASIDE: "dead_lettered",
    Move.DEFER: "deferred",
    Move.SUSPEND: "suspended",
    Move.RELEASE: "released",
    Move.LOSE: "reclaimed",
    Move.EXPIRE: "expired",
    Move.CANCEL: "cancelled",
    Move.DOOM: "failed",
    Move.SKIP: "succeeded",
}
_COMPLETE: Final = Move.COMPLETE
_FAILURES: Final = frozenset({Move.RETRY, Move.FAIL, Move.BURY, Move.LOSE, Move.EXPIRE, Move.DOOM, Move.SET_ASIDE})
_WILL_RETRY: dict[Move, bool] = {Move.RETRY: True, Move.FAIL: False, Move.DOOM: False}


class EventHub:
    """Fans events out to the app's hook, the type's hook and the streams of this process."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        on_event: EventHook | None,
        on_error: ErrorHook | None,
        meter: Meter | None = None,
        secret_keys: Collection[str] = (),
    ) -> None:
        self.meter = meter
        """counts, where the app does"""
        self._runtime = runtime
        self._on_error = on_error
        self._secret_keys = secret_keys
        """Names that the app hides in what it logs, beside those that are always hidden."""
        self._listeners: tuple[EventHook, ...] = () if on_event is None else (on_event,)
        """those who hear of every type"""
        self._failure_listeners: tuple[EventHook, ...] = ()
        """Those who hear only of what did not go well, and cost nothing where everything does."""
        self._type_hooks: dict[str, EventHook] = {}
        self._now = runtime.now
        self._deliver: EventHook = self.emit
        self._outage = OutageLog()
        self._choose_delivery()

    def hook_type(self, name: str, hook: EventHook) -> None:
        self._type_hooks[name] = hook
        self._choose_delivery()

    def has_listener(self, job_type: str) -> bool:
        """Whether anybody would hear an event of this type: ask before building one."""
        return bool(self._listeners) or job_type in self._type_hooks

    # Every job comes by the next two, so they do by themselves what event_of and emit do: each call further in took a
    # tenth of the time in which a hook is told.

    def emit_about(self, job: JobRecord, kind: EventKind, message: str | None = None) -> None:
        """What happens to a job just now."""
        if not self._listeners and job.type not in self._type_hooks:
            return
        event = Event(
            kind=kind,
            job_id=job.id,
            type=job.type,
            queue=job.queue,
            tenant=job.tenant,
            at_us=self._now(),
            attempt=job.attempt,
            group_id=job.group_id or job.id,
            message=message,
            worker=job.owner,
        )
        try:
            answer = self._deliver(event)
            if answer is not None:
                self._finish_hook(answer)
        except BaseException as error:
            self.report(as_error(error), "on_event")

    def emit_changes(self, changes: Sequence[Change], at: Instant) -> None:
        """What became of jobs in one commit."""
        if self._failure_listeners:
            self._emit_failures(changes, at)
        if not self.has_listeners:
            return
        deliver = self._deliver
        for each in changes if self._listeners else [each for each in changes if each.job.type in self._type_hooks]:
            job = each.job
            if each.move is _COMPLETE:  # nearly always
                event = Event(
                    kind="succeeded",
                    job_id=job.id,
                    type=job.type,
                    queue=job.queue,
                    tenant=job.tenant,
                    at_us=at,
                    attempt=job.attempt,
                    group_id=job.group_id or job.id,
                    worker=job.owner,
                )
            else:
                if (error := each.failed_with) is not None:
                    self.emit(_event_of_last_attempt(job, error, at))
                event = _event_of_move(each, at)
            try:
                answer = deliver(event)
                if answer is not None:
                    self._finish_hook(answer)
            except BaseException as error:
                self.report(as_error(error), "on_event")

    def _emit_failures(self, changes: Sequence[Change], at: Instant) -> None:
        for each in changes:
            if each.move in _FAILURES:
                events = [_event_of_move(each, at)]
                if (error := each.failed_with) is not None:
                    events.insert(0, _event_of_last_attempt(each.job, error, at))
                for event, listener in product(events, self._failure_listeners):
                    listener(event)

    def publish_accepted(self, jobs: Sequence[NewJob], answers: Sequence[Accepted]) -> None:
        """A submission the store took."""
        if self.meter is None and not self.has_listeners:
            return
        fresh = without_duplicates(jobs, answers)
        self.count_queued(fresh)
        self.emit_queued(fresh)

    def count_queued(self, fresh: Sequence[Queued]) -> None:
        """In any thread."""
        if self.meter is not None:
            self.meter.queued([new for new, _ in fresh])

    def emit_queued(self, fresh: Sequence[Queued]) -> None:
        if fresh and self.has_listeners:
            now = self._runtime.now()
            for new, group_id in fresh:
                if self.has_listener(new.type):
                    self.emit(_event_of_new(new, group_id, now))

    @property
    def has_listeners(self) -> bool:
        """Whether anybody listens to anything: ask before looking something up for an event."""
        return bool(self._listeners or self._type_hooks)

    def emit(self, event: Event) -> None:
        listeners = self._listeners
        if self._type_hooks and (hook := self._type_hooks.get(event.type)) is not None:
            listeners = *listeners, hook
        for listener in listeners:
            try:
                answer = listener(event)
                if answer is not None:
                    self._finish_hook(answer)
            except BaseException as error:
                self.report(as_error(error), "on_event")

    async def failures(self) -> AsyncGenerator[Event]:
        """Failed, expired, buried and lost jobs of this process, from now on, as `stream` tells of everything."""
        stream = EventStream(10_000)
        self._failure_listeners += (stream.put,)
        try:
            while True:
                yield await stream.get()
        finally:
            self._failure_listeners = tuple(listener for listener in self._failure_listeners if listener != stream.put)

    async def stream(self) -> AsyncGenerator[Event]:
        """Events of this process, from now on. A reader that falls 10 000 behind loses the oldest."""
        stream = EventStream(10_000)
        self._listeners += (stream.put,)
        self._choose_delivery()
        try:
            while True:
                yield await stream.get()
        finally:
            self._listeners = tuple(listener for listener in self._listeners if listener != stream.put)
            self._choose_delivery()

    def loop_failed(self, error: BaseException, name: str) -> None:
        """A background loop failed, and is about to be started again."""
        if self.meter is not None:
            self.meter.restarted(name)
        self.report(error, name)

    def report(self, error: BaseException, phase: str) -> None:
        """An error that must not disturb: counted, and to on_error, else to the log."""
        if self.meter is not None:
            self.meter.erred(phase)
        try:
            guarded(self._report_or_log, error, phase)
        except Exception as broken:
            # A filter or handler of the user's logging raised: nobody is left to tell, and no loop may end of it.
            traceback.print_exception(shown_error(broken, self._secret_keys))

    def _report_or_log(self, error: BaseException, phase: str) -> None:
        if self._on_error is not None:
            try:
                guarded(self._on_error, error, phase)
            except Exception as broken:
                shown = shown_error(broken, self._secret_keys)
                message = safe_error_text(error, self._secret_keys)
                logger.error("on_error raised while reporting %s of %s", message, phase, exc_info=shown)  # noqa: TRY400
        elif isinstance(error, StoreUnavailable):
            self._outage.log(error, phase, self._runtime.monotonic())
        else:
            shown = shown_error(error, self._secret_keys)
            logger.error("error in %s: %s", phase, safe_error_text(error, self._secret_keys), exc_info=shown)

    def store_is_back(self, seconds: float) -> None:
        """The store answers again, so long after the first call that failed."""
        self._outage.log_end(seconds)

    def _choose_delivery(self) -> None:
        """Whom to tell of an event of any type: where only one listens that one itself, else the way to all of them."""
        self._deliver = self._listeners[0] if len(self._listeners) == 1 and not self._type_hooks else self.emit

    def _finish_hook(self, answer: object) -> None:
        if inspect.isawaitable(answer):
            self._runtime.spawn(self._finish_hook_call(answer), name="ropewalk-hook")

    async def _finish_hook_call(self, answer: Awaitable[object]) -> None:
        try:
            await guarded_await(answer)
        except Exception as error:
            self.report(error, "on_event")


OUTAGE_LINE_EVERY_SECONDS: Final = 30.0


class OutageLog:
    """What the log says while the store is away: a line when that begins, one now and then, and one when it is over.

    Every loop fails again and again meanwhile, always for the same reason, and where in our code says nothing.
    """

    def __init__(self) -> None:
        self._logged_at: float | None = None
        self._since_then = 0
        """Number of errors that were not logged."""
        self._open = False

    def log(self, error: StoreUnavailable, phase: str, now: float) -> None:
        if self._logged_at is not None and now - self._logged_at < OUTAGE_LINE_EVERY_SECONDS:
            self._since_then += 1
            return
        more = f" ({self._since_then} more such errors since the last line)" if self._since_then else ""
        logger.warning("the store is away, %s tries again: %s%s", phase, str(error) or type(error).__name__, more)
        self._logged_at, self._since_then, self._open = now, 0, True

    def log_end(self, seconds: float) -> None:
        if self._open:
            logger.warning("the store answers again, %.1f s after the first call that failed", seconds)
        self._open = False


def without_duplicates(jobs: Sequence[NewJob], answers: Sequence[Accepted]) -> list[Queued]:
    """Returns the submitted jobs that the store did not have before, with the ids of their groups."""
    return [(new, answer.group_id) for new, answer in zip(jobs, answers, strict=True) if not answer.duplicate]


def _event_of_new(new: NewJob, group_id: str, at: Instant) -> Event:
    return Event(
        kind="queued",
        job_id=new.id,
        type=new.type,
        queue=new.queue,
        tenant=new.tenant,
        at_us=at,
        attempt=0,
        group_id=group_id,
    )


def _event_of_move(change: Change, at: Instant) -> Event:
    job, move = change.job, change.move
    if move is Move.END:
        move = _COMPLETE if job.status is Status.COMPLETED else Move.FAIL
    will_retry, skipped = _WILL_RETRY.get(move), move is Move.SKIP
    event = event_of(job, _KIND_OF_MOVE[move], at)
    return structs.replace(event, will_retry=will_retry, error=change.error, skipped=skipped)


def _event_of_last_attempt(job: JobRecord, error: ErrorInfo, at: Instant) -> Event:
    """The attempt after which a job ends is told like every attempt before it; the end of the job follows."""
    if error.category is Category.WORKER_LOST:
        return structs.replace(event_of(job, "reclaimed", at), error=error)
    return structs.replace(event_of(job, "failed", at), will_retry=False, error=error)


def event_of(job: JobRecord, kind: EventKind, at: Instant) -> Event:
    return Event(
        kind=kind,
        job_id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        at_us=at,
        attempt=job.attempt,
        group_id=job.group_id or job.id,
        worker=job.owner,
    )
