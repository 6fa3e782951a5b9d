"""`ctx.dependencies`: what a handler sees of the jobs its own waited for.

What a compensation sees of the job it makes up for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.flags import CONTINUED, FORGOTTEN
from ropewalk.domain.jobs.record import CompensatedJob, JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.workflow.dependency import Ending, ParentKind
from ropewalk.errors import InvalidInput, NotFound
from ropewalk.ports.store import messages


class Dependency(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A job that was named in depends_on, or that a `.next(...)` came after. Of a chain, its last member."""

    id: str
    type: str | None
    """None where it is missing (allow_missing) or was deleted, like state"""
    state: State | None
    ending: Ending | None
    """how it ended (of a Group: all of it); None where it was not waited for until its end"""
    read: Callable[[], object]

    @cached_property
    def result(self) -> Any:
        """Decoded when it is asked for. None where it did not complete, has none, or was missing from the beginning.

        Raises NotFound where there was one and it is gone: deleted, or pruned after its retention.
        """
        return self.read()

    def __repr__(self) -> str:
        return f"Dependency({self.id!r}, {self.type}, {'not ended' if self.ending is None else self.ending.value})"


def dependencies_of(port: AttemptPort) -> tuple[Dependency, ...]:
    return tuple(_seen(port, each) for each in port.dependencies())


def _seen(port: AttemptPort, found: messages.Dependency) -> Dependency:
    job, ending = found.job, found.edge.ending
    if job is None:
        missing = found.edge.kind is ParentKind.MISSING or ending is not Ending.COMPLETED
        read = (lambda: None) if missing else _gone(found.edge.parent_id)
        return Dependency(id=found.edge.parent_id, type=None, state=None, ending=ending, read=read)
    return Dependency(
        id=job.id,
        type=job.type,
        state=job.state_at(port.now()),
        ending=ending,
        read=_reader(port, found, job),
    )


def _reader(port: AttemptPort, found: messages.Dependency, job: JobRecord) -> Callable[[], object]:
    if job.status is not Status.COMPLETED:
        return lambda: None
    if job.flags & FORGOTTEN or (found.edge.kind is ParentKind.CHAIN and job.flags & CONTINUED):
        return _gone(job.id)
    return lambda: port.decode_result(job)


def _gone(job_id: str) -> Callable[[], object]:
    def read() -> object:
        raise NotFound(f"the result of {job_id}, which this job depended on, is gone (deleted, or pruned)")

    return read


class Compensated(Struct, frozen=True, kw_only=True):
    """The failed job, as it was when it failed: it may be pruned by now."""

    id: str
    run: int
    type: str
    arguments: Mapping[str, object] | None
    """as the untyped codec reads them, because its type need not be known here; None if another codec wrote them"""
    error: ErrorInfo
    started: bool
    """False when it failed before its first start"""


def compensated(origin: CompensatedJob) -> Compensated:
    return Compensated(
        id=origin.id,
        run=origin.run,
        type=origin.type,
        arguments=_arguments(origin.input),
        error=origin.error,
        started=origin.started,
    )


def _arguments(data: bytes) -> Mapping[str, object] | None:
    try:
        decoded = DEFAULT_CODEC.decode(data, Any)
    except InvalidInput:
        return None
    return MappingProxyType(cast("dict[str, object]", decoded)) if isinstance(decoded, dict) else None
