"""A job as users see it, with its public state, datetimes and decoded values, and the describer, which makes this
view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from ropewalk.definitions.job_types.batch_items import ITEM
from ropewalk.definitions.registry import Registry
from ropewalk.domain.failure import ErrorInfo, clipped
from ropewalk.domain.jobs.flags import FORGOTTEN, SKIPPED
from ropewalk.domain.jobs.history import HistoryEntry, assemble
from ropewalk.domain.jobs.record import AttemptRecord, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.redaction import HIDDEN, RESULT, Hide, shown_fields
from ropewalk.domain.time import Instant, to_datetime
from ropewalk.errors import InvalidInput
from ropewalk.ports.codec import Codec
from ropewalk.ports.store.reading import StoredHistory

if TYPE_CHECKING:
    from ropewalk.client.views.answers import LogInfo
    from ropewalk.client.views.workflows import EdgeInfo
    from ropewalk.domain.why import Why

Included: TypeAlias = Literal["arguments", "result", "history", "attempts", "logs", "dependencies", "why"]
"""What `get` can include in its answer; arguments and result are always there."""
INCLUDABLE: Final = ("history", "attempts", "logs", "dependencies", "why")
"""The fields of JobInfo that are None unless `get` was asked to include them."""

UNDECODED: Final = "undecoded"
"""Arguments that are not even JSON are shown as text under this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressInfo:
    """The progress that a handler reported last."""

    percent: float
    message: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job at the moment when it was read."""

    id: str
    type: str
    state: State
    queue: str
    tenant: str
    priority: int
    attempt: int
    max_attempts: int | None
    crashes: int
    run: int
    rev: int
    """The number of recorded changes: `update(if_rev=...)` refuses a job that has changed since it was read."""
    created_at: datetime
    scheduled_for: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline: datetime | None
    group_id: str
    parent_id: str | None
    chain_id: str | None
    """The id of the first job of its chain; None if the job never continued and continues none."""
    chain_index: int | None
    awaits: str | None
    """The name of the signal for which it waits."""
    skipped: bool
    """Whether it completed without running, because its dependencies failed and its `on_unsatisfied` says so."""
    worker: str | None
    idempotency_key: str | None
    correlation_id: str | None
    workflow_id: str | None
    workflow_type: str | None
    tags: Mapping[str, str]
    progress: ProgressInfo | None
    error: ErrorInfo | None
    cancel_requested: bool
    arguments: Mapping[str, object] = field(repr=False)
    """The arguments, decoded by the job type if that is registered here and they fit it; otherwise as stored, without
    types."""
    result: object = field(repr=False)
    """The result, decoded by the return annotation of the job type if that is registered here; None if there is
    none."""
    result_forgotten: bool = False
    """Whether the result was deleted before the job (`Retention.of(results=...)`)."""

    secrets: tuple[str, ...] = ()
    """The names of values that must be hidden from people: arguments and fields that are annotated as Secret, if the
    type is registered here, `return` for the result, and the `secret_keys` of the app."""
    damaged: tuple[str, ...] = ()
    """The names of its stored columns that cannot be read; their fields contain stand-ins."""

    history: tuple[HistoryInfo, ...] | None = field(default=None, repr=False)
    """Everything that happened to it; None, like the next four fields, unless `get` was asked to include it."""
    attempts: tuple[AttemptInfo, ...] | None = field(default=None, repr=False)
    """Every attempt that did not succeed."""
    logs: tuple[LogInfo, ...] | None = field(default=None, repr=False)
    """The lines that its handler logged."""
    dependencies: tuple[EdgeInfo, ...] | None = field(default=None, repr=False)
    """Its dependencies, in the order of its `depends_on`."""
    why: Why | None = field(default=None, repr=False)
    """The one cause why it is not running, or where it runs."""

    @property
    def terminal(self) -> bool:
        """Whether the job has ended."""
        return self.finished_at is not None

    def __redacted__(self, hide: Hide) -> object:
        shown = shown_fields(self, hide, self.secrets, ("arguments", "result"))
        if UNDECODED in self.arguments and self.secrets:
            shown["arguments"] = {UNDECODED: HIDDEN}
        if self.result is not None and RESULT in self.secrets:
            shown["result"] = HIDDEN
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryInfo:
    """One recorded change of a job."""

    rev: int
    kind: str
    at: datetime
    attempt: int | None
    worker: str | None
    reason: str | None
    error: ErrorInfo | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureInfo:
    """How a job failed: its last error, and every failed attempt if the caller asked for them."""

    job_id: str
    type: str
    state: State
    total_attempts: int
    error: ErrorInfo | None
    attempts: tuple[AttemptInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptInfo:
    """One attempt that did not succeed."""

    attempt: int
    run: int
    ended: str
    started_at: datetime
    ended_at: datetime
    worker: str | None
    error: ErrorInfo | None
    next_run_at: datetime | None


class Describer:
    """Makes the views of records, and decodes values by the job types that are registered here."""

    def __init__(self, registry: Registry, codec: Codec, secret_keys: frozenset[str] = frozenset()) -> None:
        self._registry = registry
        self._secret_keys = secret_keys
        self._codec = codec

    def job(self, job: JobRecord, now: Instant) -> JobInfo:
        """Returns the view of a job that was read at the time `now` of the store's clock."""
        progress, damaged = job.progress, job.damaged
        try:
            result = self.value(job.type, job.result)
        except InvalidInput:  # One job must not make a page of other jobs unreadable.
            result, damaged = None, (*damaged, "result")
        return JobInfo(
            id=job.id,
            type=job.type,
            state=job.state_at(now),
            queue=job.queue,
            tenant=job.tenant,
            priority=job.priority,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            crashes=job.crashes,
            run=job.run,
            rev=job.rev,
            created_at=to_datetime(job.created_at),
            scheduled_for=to_datetime(job.run_at),
            updated_at=to_datetime(job.updated_at),
            started_at=_datetime(job.started_at),
            finished_at=_datetime(job.finished_at),
            deadline=_datetime(job.deadline),
            group_id=job.group_id or job.id,
            parent_id=job.parent_id,
            chain_id=job.chain_id,
            chain_index=job.chain_index,
            awaits=job.awaits,
            skipped=bool(job.flags & SKIPPED),
            worker=job.owner,
            idempotency_key=job.idempotency_key,
            correlation_id=job.correlation_id,
            workflow_id=job.workflow_id,
            workflow_type=job.workflow_type,
            tags=job.tags,
            progress=None
            if progress is None
            else ProgressInfo(percent=progress.percent, message=progress.message, updated_at=to_datetime(progress.at)),
            error=job.error,
            cancel_requested=job.cancel is not None,
            arguments=self.arguments(job.type, job.input),
            result=result,
            result_forgotten=bool(job.flags & FORGOTTEN),
            secrets=self.secrets(job.type),
            damaged=damaged,
        )

    def history(self, stored: StoredHistory) -> list[HistoryInfo]:
        """Returns the recorded changes of a job, the oldest first."""
        return [_history(entry) for entry in assemble(stored.job, stored.attempts, stored.events)]

    def failure(self, stored: StoredHistory, *, all_attempts: bool) -> FailureInfo:
        """Returns how a job failed."""
        job = stored.job
        return FailureInfo(
            job_id=job.id,
            type=job.type,
            state=job.state_at(stored.now),
            total_attempts=job.attempt,
            error=job.error,
            attempts=tuple(_attempt(each) for each in stored.attempts) if all_attempts else (),
        )

    def arguments(self, job_type: str, data: bytes) -> Mapping[str, object]:
        """Returns arguments decoded by their job type if that is registered here and they fit it; otherwise as
        stored."""
        batch = False
        if job_type in self._registry:
            known = self._registry.get(job_type)
            batch = known.options.batch is not None
            try:
                return known.decode_input(data)
            except InvalidInput:
                pass
        try:
            decoded: object = self._codec.decode(data, Any)
        except InvalidInput:
            return {UNDECODED: clipped(data.decode(errors="backslashreplace"))}
        item: dict[str, object] = {ITEM: decoded}
        return cast("dict[str, object]", decoded) if isinstance(decoded, dict) and not batch else item

    def secrets(self, job_type: str) -> tuple[str, ...]:
        """Returns the names of the values of this type that must be hidden from people."""
        declared = self._registry.get(job_type).resolve().secrets if job_type in self._registry else frozenset[str]()
        return tuple(sorted(declared | self._secret_keys))

    def value(self, job_type: str | None, data: bytes | None) -> object:
        """Returns a stored value decoded by the type that produced it, or without types if that type is not known
        here."""
        if data is None:
            return None
        if job_type is not None and job_type in self._registry:
            return self._registry.get(job_type).decode_result(data)
        return self._codec.decode(data, Any)


def _datetime(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _history(entry: HistoryEntry) -> HistoryInfo:
    return HistoryInfo(
        rev=entry.rev,
        kind=entry.kind,
        at=to_datetime(entry.at),
        attempt=entry.attempt,
        worker=entry.worker,
        reason=entry.reason,
        error=entry.error,
    )


def _attempt(record: AttemptRecord) -> AttemptInfo:
    return AttemptInfo(
        attempt=record.attempt,
        run=record.run,
        ended=record.move.value,
        started_at=to_datetime(record.started_at),
        ended_at=to_datetime(record.ended_at),
        worker=record.owner,
        error=record.error,
        next_run_at=_datetime(record.next_run_at),
    )
