"""What a completion leaves behind it, and how an attempt ends for which that cannot be written.

Contributions folded by a function of the user's: read the group's value, fold, settle; again if it has changed.
What the function raises is the failure of the group and not of the job: its handler has run and must not run again.

The store takes a fold only over the version it was made of. So one settle carries at most one fold a group (a second
would rest on a first that may yet be refused), and folds go first in their batch, before plain contributions to the
same group outdate them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from msgspec import structs

from ropewalk.definitions.results.classify import described
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.results.returned import fold_of
from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.jobs import retry
from ropewalk.domain.jobs.outcome import Aborted, Completed, Errored, Outcome, Suspended
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.transition import Settlement, decide
from ropewalk.domain.user_calls import guarded
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.group_value import NOTHING, GroupValue
from ropewalk.errors import LimitExceeded, RopewalkError, Unsupported
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.worker.context import WorkerContext

if TYPE_CHECKING:
    from ropewalk.worker.attempt import Attempt


def written_with(sequel: CompletionPlan) -> list[NewJob]:
    """The jobs that came with a completion."""
    return [*sequel.children, *(() if sequel.continuation is None else (sequel.continuation,))]


def refused_for_good(attempt: Attempt, error: RopewalkError, worker_context: WorkerContext) -> Settlement:
    """A dependency that is not there or an id that is taken will be so next time, too: no further attempt."""
    told = ErrorInfo(
        category=Category.PERMANENT,
        code=code_of(error),
        type=type(error).__name__,
        message=clipped(f"it completed, but what should follow was refused: {error}"),
        worker=worker_context.owner,
        host=worker_context.host,
    )
    return decide(attempt.job, Aborted(told), BUILT_IN, 0.0, attempt.spent)


def without_workflows(attempt: Attempt, outcome: Outcome, worker_context: WorkerContext) -> Outcome:
    """The outcome on a store that has no workflows: it never will have, so what needs them fails for good."""
    match outcome:
        case Errored(error) if error.type == Unsupported.__name__:
            return Aborted(structs.replace(error, category=Category.PERMANENT, code=UNSUPPORTED))
        case Suspended() | Completed(sequel=CompletionPlan()):
            attempt.fold = None
            try:
                WORKFLOWS.of(worker_context.store)
            except Unsupported as error:
                return Aborted(described(error, Category.PERMANENT, code=UNSUPPORTED))
            return outcome
        case _:
            return outcome


def code_of(error: RopewalkError) -> str:
    """The name of the exception as a code: NotFound → not_found."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


UNSUPPORTED: Final = "unsupported"
TRIES_MAX: Final = 50
CONTENDED: Final = ErrorInfo(
    category=Category.SYSTEM, code="contended", message="the group's value kept changing while this was folded into it"
)

Fold: TypeAlias = Callable[[Any, Any], Any]
Batch: TypeAlias = "list[tuple[Attempt, Settlement]]"
_Group: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class PendingFold:
    """A function and the value it adds, kept with the attempt until it is settled."""

    function: Fold
    value: object
    tries: int = 0
    refused: RopewalkError | None = None
    """what the store said to the last try"""
    reported: bool = False
    """Whether on_error has heard what the function raised."""


def pending_fold(returned: object) -> PendingFold | None:
    """Of what a handler returned, where its value is folded by a function."""
    function = fold_of(returned)
    if function is None:
        return None
    return PendingFold(function, cast("Result[object, object]", returned).value)


class Folding:
    def __init__(self, worker_context: WorkerContext) -> None:
        self._worker_context = worker_context

    def concerns(self, batch: Batch) -> bool:
        return any(attempt.fold is not None for attempt, _ in batch)

    async def fold(self, batch: Batch) -> tuple[Batch, Batch]:
        """(what to settle now, what has to wait for the next time)."""
        first: dict[_Group, tuple[Attempt, Settlement]] = {}
        plain: Batch = []
        later: Batch = []
        for item in batch:
            if item[0].fold is None:
                plain.append(item)
            elif first.setdefault(_group(item[0]), item) is not item:
                later.append(item)
        held = await self._held(first)
        folded = [(attempt, self._folded(attempt, asked, held[group])) for group, (attempt, asked) in first.items()]
        return folded + plain, later

    async def _held(self, groups: Iterable[_Group]) -> dict[_Group, GroupValue]:
        held = dict.fromkeys(groups, NOTHING)
        workflows = WORKFLOWS.of(self._worker_context.store)
        for tenant in {tenant for tenant, _ in held}:
            found = await workflows.groups(tenant, [group_id for of, group_id in held if of == tenant])
            held.update({(tenant, group_id): record.value for group_id, record in found.items()})
        return held

    def _folded(self, attempt: Attempt, asked: Settlement, held: GroupValue) -> Settlement:
        pending, sequel = attempt.fold, asked.sequel
        assert pending is not None and sequel is not None and sequel.contribution is not None
        if pending.refused is not None and sequel.contribution.expected_version == held.version:
            # The value is still the one it was folded over: something else about it was refused.
            attempt.fold = None
            return refused_for_good(attempt, pending.refused, self._worker_context)
        if pending.tries >= TRIES_MAX:
            return self._given_up(attempt, Errored(CONTENDED))
        pending.tries += 1
        value, failed = self._over(held, attempt, pending)
        folded = structs.replace(sequel.contribution, value=value, error=failed, expected_version=held.version)
        return structs.replace(asked, sequel=structs.replace(sequel, contribution=folded))

    def _over(self, held: GroupValue, attempt: Attempt, pending: PendingFold) -> tuple[bytes | None, str | None]:
        """The next value, or why there is none. The job completed: what the function raises fails its group alone."""
        if held.conflict is not None or held.reducer == "final":
            return None, held.conflict  # the value can be told no more, or changes no more
        try:
            return guarded(self._encoded, held, pending), None
        except Exception as error:
            if not pending.reported:
                pending.reported = True
                self._worker_context.events.report(error, "append")
            name = getattr(pending.function, "__qualname__", "a function")
            said = described(error, secrets=attempt.job_type.hidden_names(self._worker_context.logs.secret_keys))
            return None, clipped(f"append={name} of {attempt.job.type} raised {said.type}: {said.message}")

    def _encoded(self, held: GroupValue, pending: PendingFold) -> bytes:
        codec = self._worker_context.codec
        so_far = None
        if held.reducer == "custom" and held.value is not None:
            so_far = codec.decode(held.value, Any)
        data = codec.encode(pending.function(so_far, pending.value), Any)
        limit = self._worker_context.bounds.result_bytes_max
        if len(data) > limit:
            raise LimitExceeded(f"the group's value is {len(data):,} bytes, over result_bytes_max={limit:,}")
        return data

    def _given_up(self, attempt: Attempt, outcome: Outcome) -> Settlement:
        attempt.fold = None
        worker_context = self._worker_context
        backoff = retry.resolve(attempt.job.backoff, attempt.job_type.options.backoff, worker_context.defaults.backoff)
        return decide(attempt.job, outcome, backoff, worker_context.runtime.random(), attempt.spent)


def _group(attempt: Attempt) -> _Group:
    return attempt.job.tenant, attempt.job.group_id or attempt.job.id
