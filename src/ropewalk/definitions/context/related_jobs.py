"""The jobs that a handler sees: those that its own job waited for, and the failed job that it compensates."""

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
    """A job that this job waited for, because of depends_on or `.next(...)`. For a chain it is the last member."""

    id: str
    type: str | None
    """The name of its type; None if the job did not exist (allow_missing) or was deleted."""
    state: State | None
    """Its state now; None if the job did not exist (allow_missing) or was deleted."""
    ending: Ending | None
    """How the job, or the whole Group, ended; None if this job did not wait for its end."""
    is_group: bool = False
    """Whether it was named as Group(...) and is the root of its group; `result` is then the value of the group."""
    error: ErrorInfo | None = None
    """Why the job itself failed, if it did."""
    read: Callable[[], object]
    """For the engine: the function that decodes the result."""

    @cached_property
    def result(self) -> Any:
        """The result of the job, decoded on first use; None if it did not complete, has no result, or never existed.

        For a Group it is the value of the group, as `handle.group()` returns it, even if jobs of the group failed.

        Raises GroupFailed if the group has no single value, and NotFound if there was a result that is gone, because it
        was deleted, or pruned after its retention.
        """
        return self.read()

    def result_of(self, job_type: JobType[..., S, Any]) -> S:
        """`result` with its type: `ctx.dependencies[0].result_of(load)`. A chain has the type of its last member.

        Raises JobFailed or JobCancelled if the job did not complete, NotFound if its result is gone, Conflict if it has
        not ended, and InvalidInput if it has another type.
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
        """The value of a Group, with the type that its root declares: `ctx.dependencies[0].group_of(total)`.

        Raises GroupFailed if the group has no single value, NotFound if the value is gone, Conflict if the group has
        not ended, and InvalidInput if this is no group or its root has another type.
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
    """What the job of this attempt waited for, in the order of depends_on."""
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
    """The failed job that a compensation makes up for, as it was when it failed; it may be pruned by now."""

    id: str
    run: int
    type: str
    arguments: Mapping[str, object] | None
    """Its arguments as the untyped codec reads them, because its type may be unknown here; None for another codec."""
    error: ErrorInfo
    started: bool
    """Whether it had ever started before it failed."""

    def __repr__(self) -> str:
        """Show no arguments, because it may not be known here which of them are secret."""
        return f"Compensated({self.id!r}, {self.type}, run {self.run})"

    def __redacted__(self, hide: Hide) -> object:
        return repr(self)


def compensated(origin: CompensatedJob) -> Compensated:
    """The failed job as a handler sees it, from what the store has kept of it."""
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
