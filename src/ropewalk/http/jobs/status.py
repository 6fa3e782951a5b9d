"""From a stored job to what an identity sees of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ropewalk.client.views.jobs import Describer
from ropewalk.domain import failure
from ropewalk.domain.jobs.flags import SKIPPED
from ropewalk.domain.jobs.history import HistoryEntry
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.redaction import HIDDEN, RESULT, redacted
from ropewalk.domain.time import Instant
from ropewalk.http.identity.identity import Identity, Payloads
from ropewalk.http.jobs.shapes import (
    ErrorInfo,
    JobResult,
    JobStatus,
    Progress,
    ResultStatus,
    StateTransition,
)
from ropewalk.http.service import Service
from ropewalk.http.wire import ErrorCategory, JobState, shown_priority, timestamp, timestamp_or_none


@dataclass(frozen=True, slots=True)
class JobView:
    """What one identity sees of jobs. Every answer that contains users' data is made here."""

    describe: Describer
    payloads: Payloads

    @classmethod
    def of(cls, service: Service, identity: Identity) -> JobView:
        return cls(service.describe, identity.payloads)

    def status(self, job: JobRecord, now: Instant, *, with_result: bool = False) -> JobStatus:
        return JobStatus(
            job_id=job.id,
            type=job.type,
            state=JobState.of(job.state_at(now)),
            attempt=job.attempt,
            created_at=timestamp(job.created_at),
            updated_at=timestamp(job.updated_at),
            scheduled_for=timestamp(job.run_at),
            started_at=timestamp_or_none(job.started_at),
            completed_at=timestamp_or_none(job.finished_at),
            progress=self._progress(job),
            priority=shown_priority(job.priority),
            tags=job.tags,
            correlation_id=job.correlation_id,
            queue=job.queue,
            tenant=job.tenant,
            max_attempts=job.max_attempts,
            crashes=job.crashes,
            run=job.run,
            rev=job.rev,
            deadline=timestamp_or_none(job.deadline),
            group_id=job.group_id or job.id,
            parent_id=job.parent_id,
            chain_id=job.chain_id,
            chain_index=job.chain_index,
            awaits=job.awaits,
            skipped=bool(job.flags & SKIPPED),
            worker_id=job.owner,
            idempotency_key=job.idempotency_key,
            workflow_id=job.workflow_id,
            workflow_type=job.workflow_type,
            cancel_requested=job.cancel is not None,
            error=self.error(job.error),
            payload=self.payload(job),
            result=self.result(job) if with_result and job.terminal else UNSET,
        )

    def payload(self, job: JobRecord) -> Raw | UnsetType:
        """The arguments as they are stored, as far as this identity may see them."""
        return self.arguments(job.type, job.input)

    def arguments(self, job_type: str, data: bytes) -> Raw | UnsetType:
        """Encoded arguments of this type, as far as this identity may see them."""
        match self.payloads:
            case Payloads.FULL:
                return Raw(data)
            case Payloads.REDACTED:
                return self._redacted(data, self.describe.secrets(job_type))
            case Payloads.NONE:
                return UNSET

    def value(self, job_type: str, data: bytes | None) -> Raw | None:
        """A stored result, step or checkpoint of a job of this type."""
        if data is None:
            return None
        match self.payloads:
            case Payloads.FULL:
                return Raw(data)
            case Payloads.REDACTED:
                secrets = self.describe.secrets(job_type)
                return _ALL_HIDDEN if RESULT in secrets else self._redacted(data, secrets)
            case Payloads.NONE:
                return None

    def text(self, text: str | None) -> str | None:
        """A message or a traceback, which may quote arguments."""
        return None if self.payloads is Payloads.NONE else text

    def error(self, error: failure.ErrorInfo | None) -> ErrorInfo | None:
        if error is None:
            return None
        return ErrorInfo(
            category=ErrorCategory.of(error.category),
            code=error.code or error.type,
            message=self.text(error.message),
            stack_trace=self.text(error.traceback),
        )

    def result(self, job: JobRecord) -> JobResult:
        succeeded = job.error is None
        took = None
        if job.started_at is not None and job.finished_at is not None:
            took = (job.finished_at - job.started_at) // 1000
        return JobResult(
            status=ResultStatus.SUCCESS if succeeded else ResultStatus.FAILURE,
            output=self.value(job.type, job.result),
            error=self.error(job.error),
            duration_ms=took,
            attempt=job.attempt,
        )

    def transitions(self, entries: Iterable[HistoryEntry]) -> list[StateTransition]:
        """A history as changes of state. A change that leaves the state alone, such as an update, leads to itself."""
        before: JobState | None = None
        found: list[StateTransition] = []
        for entry in entries:
            after = _LEADS_TO.get(entry.kind) or before or JobState.SCHEDULED
            found.append(
                StateTransition(
                    from_state=before,
                    to_state=after,
                    timestamp=timestamp(entry.at),
                    reason=self.text(entry.reason),
                    rev=entry.rev,
                    kind=entry.kind.upper(),
                    attempt=entry.attempt,
                    worker_id=entry.worker,
                )
            )
            before = after
        return found

    def _progress(self, job: JobRecord) -> Progress | None:
        at = job.progress
        if at is None:
            return None
        return Progress(percent=round(at.percent), message=self.text(at.message), updated_at=timestamp(at.at))

    def _redacted(self, data: bytes, secrets: Iterable[str]) -> Raw:
        try:
            value: object = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return _ALL_HIDDEN
        return Raw(msgspec.json.encode(redacted(value, tuple(secrets))))


_ALL_HIDDEN: Final = Raw(msgspec.json.encode(HIDDEN))
_LEADS_TO: Final = {
    "queued": JobState.SCHEDULED,
    "started": JobState.RUNNING,
    Move.COMPLETE.value: JobState.COMPLETED,
    Move.RETRY.value: JobState.RETRYING,
    Move.DEFER.value: JobState.DELAYED,
    Move.SUSPEND.value: JobState.PENDING,
    Move.RELEASE.value: JobState.SCHEDULED,
    Move.LOSE.value: JobState.SCHEDULED,
    Move.FAIL.value: JobState.FAILED,
    Move.BURY.value: JobState.DEAD_LETTER,
    Move.EXPIRE.value: JobState.DEAD_LETTER,
    Move.SET_ASIDE.value: JobState.DEAD_LETTER,
    Move.CANCEL.value: JobState.CANCELLED,
    "cancelled": JobState.CANCELLED,
    "retried": JobState.SCHEDULED,
}
"""The state after an entry of a history, by its kind. Kinds that are not here leave the state as it was."""
