"""A job as people see it: public state, datetimes, decoded values."""

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
"""the fields of JobInfo that are there only where `get` was asked to include them"""

UNDECODED: Final = "undecoded"
"""The name under which arguments are shown, as text, that are not even JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressInfo:
    percent: float
    message: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
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
    """the first job of its chain; None where it never continued"""
    chain_index: int | None
    awaits: str | None
    """the signal it waits for"""
    skipped: bool
    """completed without running: its dependencies failed and it asked to be passed over then"""
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
    """decoded by the type where it is registered here and they fit it; otherwise what is stored, untyped"""
    result: object = field(repr=False)
    """decoded by the type's return annotation where it is registered here; None too where it was forgotten"""
    result_forgotten: bool = False
    """it had a result, which was kept shorter than the job (`Retention.of(results=...)`)"""

    secrets: tuple[str, ...] = ()
    """Names of what is to be hidden from people: arguments and fields annotated as Secret, as far as the type is
    registered here, `return` for the result, and the app's own `secret_keys`."""
    damaged: tuple[str, ...] = ()
    """names of its stored columns that cannot be read; what is told of these is a stand-in"""

    history: tuple[HistoryInfo, ...] | None = field(default=None, repr=False)
    """everything that happened to it; None, like the next four, where `get` was not asked to include it"""
    attempts: tuple[AttemptInfo, ...] | None = field(default=None, repr=False)
    """every attempt that ended otherwise than in success"""
    logs: tuple[LogInfo, ...] | None = field(default=None, repr=False)
    """what its handler logged"""
    dependencies: tuple[EdgeInfo, ...] | None = field(default=None, repr=False)
    """what it waits for, or waited for, in the order of its `depends_on`"""
    why: Why | None = field(default=None, repr=False)
    """the one cause it is not running, or where it runs"""

    @property
    def terminal(self) -> bool:
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
    rev: int
    kind: str
    at: datetime
    attempt: int | None
    worker: str | None
    reason: str | None
    error: ErrorInfo | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureInfo:
    """How a job failed: its last error, and every attempt that ended badly where asked for."""

    job_id: str
    type: str
    state: State
    total_attempts: int
    error: ErrorInfo | None
    attempts: tuple[AttemptInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptInfo:
    attempt: int
    run: int
    ended: str
    started_at: datetime
    ended_at: datetime
    worker: str | None
    error: ErrorInfo | None
    next_run_at: datetime | None


class Describer:
    """Turns records into what people see, decoding by the types registered here."""

    def __init__(self, registry: Registry, codec: Codec, secret_keys: frozenset[str] = frozenset()) -> None:
        self._registry = registry
        self._secret_keys = secret_keys
        self._codec = codec

    def job(self, job: JobRecord, now: Instant) -> JobInfo:
        progress, damaged = job.progress, job.damaged
        try:
            result = self.value(job.type, job.result)
        except InvalidInput:  # one job must not hide a page of others
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
        return [_history(entry) for entry in assemble(stored.job, stored.attempts, stored.events)]

    def failure(self, stored: StoredHistory, *, all_attempts: bool) -> FailureInfo:
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
        """By the type where it is registered here and they fit it; otherwise what is stored, untyped."""
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
        declared = self._registry.get(job_type).resolve().secrets if job_type in self._registry else frozenset[str]()
        return tuple(sorted(declared | self._secret_keys))

    def value(self, job_type: str | None, data: bytes | None) -> object:
        """Every stored value is decoded by the type that produced it; untyped where that is not known here."""
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
