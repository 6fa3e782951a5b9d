"""`ctx.dependencies`: what a handler sees of the jobs its own waited for.

What a compensation sees of the job it makes up for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.definitions.results.group_values import check_group, value_of
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.flags import CONTINUED, FORGOTTEN
from ropewalk.domain.jobs.record import CompensatedJob, JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.redaction import Hide
from ropewalk.domain.shown_values import shown
from ropewalk.domain.workflow.dependency import Ending, ParentKind
from ropewalk.errors import Conflict, InvalidInput, JobCancelled, JobFailed, NotFound, RopewalkError
from ropewalk.ports.store import workflows

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType

S = TypeVar("S")
G = TypeVar("G")


class Dependency(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A job that was named in depends_on, or that a `.next(...)` came after. Of a chain, its last member."""

    id: str
    type: str | None
    """None where it is missing (allow_missing) or was deleted, like state"""
    state: State | None
    ending: Ending | None
    """how it ended (of a Group: all of it); None where it was not waited for until its end"""
    is_group: bool = False
    """It was named as Group(...) and is the root of its group: `result` is the value of that group."""
    error: ErrorInfo | None = None
    """Why the job itself failed, where it did."""
    read: Callable[[], object]

    @cached_property
    def result(self) -> Any:
        """Decoded when it is asked for. None where it did not complete, has none, or was missing from the beginning.

        Of a Group the value of the group, as `handle.group()` answers it; also where jobs of it failed.

        Raises GroupFailed where the value of a group cannot be told, and NotFound where there was a result and it is
        gone: deleted, or pruned after its retention.
        """
        return self.read()

    def result_of(self, job_type: JobType[..., S, Any]) -> S:
        """`result`, typed: `ctx.dependencies[0].result_of(load)`. Of a chain the type is that of its last member.

        Raises JobFailed or JobCancelled where the job did not complete, NotFound where its result is gone, Conflict
        where it has not ended, InvalidInput where it is of another type.
        """
        self._check_type(job_type)
        if self.is_group:
            raise InvalidInput(
                f"dependency {self.id} was named as Group(...): ask for its value by group_of(job_type)",
                field="job_type",
            )
        if self.state is not State.COMPLETED:
            raise self._not_completed()
        return cast("S", self.result)

    def group_of(self, job_type: JobType[..., Any, G]) -> G:
        """The value of a Group, typed by the type of its root: `ctx.dependencies[0].group_of(total)`.

        Raises GroupFailed where the value cannot be told, NotFound where it is gone, Conflict where the group has not
        ended, InvalidInput where this is no group or its root is of another type.
        """
        self._check_type(job_type)
        if not self.is_group:
            raise InvalidInput(
                f"dependency {self.id} is not the root of a group named as Group(...): use result_of(job_type)",
                field="job_type",
            )
        if self.ending is None:
            raise Conflict(f"group {self.id} has not ended: its value is not known yet")
        return cast("G", self.result)

    def _check_type(self, job_type: object) -> None:
        name = getattr(job_type, "name", None)
        if not isinstance(name, str):
            raise InvalidInput(
                f"job_type={shown(job_type)} must be a job type: a function decorated with @job",
                field="job_type",
            )
        if self.type is None:
            raise NotFound(f"job {self.id}, which this job depended on, is not there (deleted, or never submitted)")
        if name != self.type:
            raise InvalidInput(f"job_type={name!r}: dependency {self.id} is a {self.type!r}", field="job_type")

    def _not_completed(self) -> RopewalkError:
        state = "unknown" if self.state is None else self.state.value
        if self.state is State.CANCELLED:
            return JobCancelled(f"dependency {self.id} was cancelled: it has no result", job_id=self.id)
        if self.state not in (State.FAILED, State.DEAD_LETTER):
            return Conflict(f"dependency {self.id} has not ended: it is {state}")
        why = "" if self.error is None else f": {self.error.message}"
        return JobFailed(f"dependency {self.id} is {state}{why}", job_id=self.id, state=state, error=self.error)

    def __repr__(self) -> str:
        return f"Dependency({self.id!r}, {self.type}, {'not ended' if self.ending is None else self.ending.value})"


def dependencies_of(port: AttemptPort) -> tuple[Dependency, ...]:
    return tuple(_dependency(port, each) for each in port.dependencies())


def _dependency(port: AttemptPort, found: workflows.Dependency) -> Dependency:
    job, ending = found.job, found.edge.ending
    if job is None:
        missing = found.edge.kind is ParentKind.MISSING or ending is not Ending.COMPLETED
        read = (lambda: None) if missing else _raiser_of_not_found(found.edge.parent_id)
        return Dependency(id=found.edge.parent_id, type=None, state=None, ending=ending, read=read)
    return Dependency(
        id=job.id,
        type=job.type,
        state=job.state_at(port.now()),
        ending=ending,
        is_group=found.edge.kind is ParentKind.TREE and job.scope_id is None,
        error=job.error,
        read=_reader(port, found, job),
    )


def _reader(port: AttemptPort, found: workflows.Dependency, job: JobRecord) -> Callable[[], object]:
    if found.group is not None:
        group, contributions = found.group, found.contributions
        if found.edge.ending is None:
            return lambda: None
        return lambda: _group_value(port, job, group, contributions)
    if job.status is not Status.COMPLETED:
        return lambda: None
    if job.flags & FORGOTTEN or (found.edge.kind is ParentKind.CHAIN and job.flags & CONTINUED):
        return _raiser_of_not_found(job.id)
    return lambda: port.decode_result(job)


def _group_value(
    port: AttemptPort,
    root: JobRecord,
    group: workflows.GroupRecord,
    contributions: Sequence[workflows.GroupContribution],
) -> object:
    def decode(job_type: str | None, data: bytes | None) -> object:
        known = None if job_type is None else port.known_type(job_type)
        return port.decode_value(data) if known is None or data is None else known.decode_result(data)

    check_group(root, group, raise_on_failure=False)
    return value_of(root, group, contributions, decode)


def _raiser_of_not_found(job_id: str) -> Callable[[], object]:
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

    def __repr__(self) -> str:
        """Without its arguments: what of them is secret may not be known here."""
        return f"Compensated({self.id!r}, {self.type}, run {self.run})"

    def __redacted__(self, hide: Hide) -> object:
        return repr(self)


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
