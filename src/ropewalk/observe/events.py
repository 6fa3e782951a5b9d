"""Events say what happened to jobs. After each commit the hub sends them to hooks and streams.

An event without a listener costs nothing, and an error of a listener is reported and disturbs nothing else.
"""

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
from ropewalk.observe.outage_log import OutageLog
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
    """One thing that happened to a job. `group_closed` is about the root of the group, `schedule_fired` about the job
    that the schedule made, and `backlog` about the job that waited longest."""

    kind: EventKind
    job_id: str
    type: str
    queue: str
    tenant: str
    at_us: Instant
    """The time of the event in µs since 1970 (UTC); `at` is this time as a datetime."""
    attempt: int
    group_id: str
    will_retry: bool | None = None
    """Whether another attempt follows; only `failed` has it."""
    error: ErrorInfo | None = None
    percent: float | None = None
    message: str | None = None
    worker: str | None = None
    skipped: bool = False
    """Whether the job succeeded without running, because its dependencies failed and its `on_unsatisfied` says so; only
    `succeeded` has it."""
    schedule: str | None = None
    """The name of the schedule; only `schedule_fired` has it."""
    fire_time: datetime | None = None
    """The time at which the schedule was due; only `schedule_fired` has it."""

    @property
    def at(self) -> datetime:
        """The time of the event. It is computed when it is read, because that takes as long as calling a hook, and most
        hooks do not read it."""
        return to_datetime(self.at_us)

    def __repr__(self) -> str:
        names = ["at" if name == "at_us" else name for name in self.__struct_fields__]
        return f"Event({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


Queued: TypeAlias = tuple[NewJob, str]
"""A job that is new to the store, and the id of its group."""
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
    """Sends events to the hook of the app, to the hook of the job's type and to the streams of this process."""

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
        """The meter that counts what happens; None if the app has no metrics."""
        self._runtime = runtime
        self._on_error = on_error
        self._secret_keys = secret_keys
        """The names that the app hides in what it logs, in addition to those that are always hidden."""
        self._listeners: tuple[EventHook, ...] = () if on_event is None else (on_event,)
        """These listeners get the events of every type."""
        self._failure_listeners: tuple[EventHook, ...] = ()
        """These listeners get only failures, so that they cost nothing while all jobs succeed."""
        self._type_hooks: dict[str, EventHook] = {}
        self._now = runtime.now
        self._deliver: EventHook = self.emit
        self._outage = OutageLog()
        self._choose_delivery()

    def hook_type(self, name: str, hook: EventHook) -> None:
        """Has the hook called with every event about jobs of this type."""
        self._type_hooks[name] = hook
        self._choose_delivery()

    def has_listener(self, job_type: str) -> bool:
        """Whether anybody listens to events of this type. Callers ask this before they make an event."""
        return bool(self._listeners) or job_type in self._type_hooks

    # Every job comes through the next two methods, so they contain what event_of and emit do: each further call took a
    # tenth of the time that a hook takes.

    def emit_about(self, job: JobRecord, kind: EventKind, message: str | None = None) -> None:
        """Sends an event about a job that happens now."""
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
        """Sends the events about the changes of one commit."""
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
        """Counts the jobs of a submission that are new to the store, and sends events about them."""
        if self.meter is None and not self.has_listeners:
            return
        fresh = without_duplicates(jobs, answers)
        self.count_queued(fresh)
        self.emit_queued(fresh)

    def count_queued(self, fresh: Sequence[Queued]) -> None:
        """Counts new jobs. Any thread may call this."""
        if self.meter is not None:
            self.meter.queued([new for new, _ in fresh])

    def emit_queued(self, fresh: Sequence[Queued]) -> None:
        """Sends the events about new jobs."""
        if fresh and self.has_listeners:
            now = self._runtime.now()
            for new, group_id in fresh:
                if self.has_listener(new.type):
                    self.emit(_event_of_new(new, group_id, now))

    @property
    def has_listeners(self) -> bool:
        """Whether anybody listens at all. Callers ask this before they read something for an event."""
        return bool(self._listeners or self._type_hooks)

    def emit(self, event: Event) -> None:
        """Sends an event to all its listeners."""
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
        """Yields the events about attempts and jobs that failed, expired or were lost in this process, from now on. A
        reader that falls 10 000 events behind loses the oldest."""
        stream = EventStream(10_000)
        self._failure_listeners += (stream.put,)
        try:
            while True:
                yield await stream.get()
        finally:
            self._failure_listeners = tuple(listener for listener in self._failure_listeners if listener != stream.put)

    async def stream(self) -> AsyncGenerator[Event]:
        """Yields all events of this process, from now on. A reader that falls 10 000 events behind loses the oldest."""
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
        """Reports that a background loop failed; its supervisor is about to start it again."""
        if self.meter is not None:
            self.meter.restarted(name)
        self.report(error, name)

    def report(self, error: BaseException, phase: str) -> None:
        """Counts an error that must not stop anything else, and passes it to `on_error`; without that hook it is
        logged."""
        if self.meter is not None:
            self.meter.erred(phase)
        try:
            guarded(self._report_or_log, error, phase)
        except Exception as broken:
            # A filter or handler of the user's logging raised. Nothing but stderr is left, and no loop may end because
            # of it.
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
        """Logs that the store answers again, this many seconds after the first call that failed."""
        self._outage.log_end(seconds)

    def _choose_delivery(self) -> None:
        """Chooses how events are sent: directly to the listener if there is only one, and otherwise through `emit`."""
        self._deliver = self._listeners[0] if len(self._listeners) == 1 and not self._type_hooks else self.emit

    def _finish_hook(self, answer: object) -> None:
        if inspect.isawaitable(answer):
            self._runtime.spawn(self._finish_hook_call(answer), name="ropewalk-hook")

    async def _finish_hook_call(self, answer: Awaitable[object]) -> None:
        try:
            await guarded_await(answer)
        except Exception as error:
            self.report(error, "on_event")


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
    """Returns the event about the last attempt of a job that ended. Listeners get it before the event about the end, so
    that they see every attempt."""
    if error.category is Category.WORKER_LOST:
        return structs.replace(event_of(job, "reclaimed", at), error=error)
    return structs.replace(event_of(job, "failed", at), will_retry=False, error=error)


def event_of(job: JobRecord, kind: EventKind, at: Instant) -> Event:
    """Returns an event about a job."""
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
