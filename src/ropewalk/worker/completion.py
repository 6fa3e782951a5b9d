"""The worker's part of a completion: it folds contributions by a function of the user's, and it decides how an attempt
ends if the store refuses the jobs or the contribution that its completion brings.

To fold, the worker reads the value of the group, calls the function and settles; if the value has changed meanwhile, it
does so again. An exception of the function makes the group fail and not the job, because the handler of the job has run
and must not run again.

The store accepts a fold only over the version of the value that the worker read. So one call of settle contains at most
one fold for each group (a second fold would rest on a first one that may yet be refused), and folds come first in their
batch, because plain contributions to the same group would outdate them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from msgspec import structs

from ropewalk.definitions.results.classify import error_info
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


def written_with(plan: CompletionPlan) -> list[NewJob]:
    """Returns the jobs that a completion plan writes: the children and the continuation."""
    return [*plan.children, *(() if plan.continuation is None else (plan.continuation,))]


def refused_for_good(attempt: Attempt, error: RopewalkError, worker_context: WorkerContext) -> Settlement:
    """Returns the settlement of an attempt whose completion plan the store refused: the job fails without another
    attempt.

    A dependency that does not exist, or an id that is taken, would be refused the next time, too.
    """
    refusal = ErrorInfo(
        category=Category.PERMANENT,
        code=code_of(error),
        type=type(error).__name__,
        message=clipped(f"it completed, but what should follow was refused: {error}"),
        worker=worker_context.owner,
        host=worker_context.host,
    )
    return decide(attempt.job, Aborted(refusal), BUILT_IN, 0.0, attempt.timing)


def without_workflows(attempt: Attempt, outcome: Outcome, worker_context: WorkerContext) -> Outcome:
    """Returns the outcome of an attempt on a store without workflows: a job that needs them fails without another
    attempt, because the store will not have them the next time either."""
    match outcome:
        case Errored(error) if error.type == Unsupported.__name__:
            return Aborted(structs.replace(error, category=Category.PERMANENT, code=UNSUPPORTED))
        case Suspended() | Completed(plan=CompletionPlan()):
            attempt.fold = None
            try:
                WORKFLOWS.of(worker_context.store)
            except Unsupported as error:
                return Aborted(error_info(error, Category.PERMANENT, code=UNSUPPORTED))
            return outcome
        case _:
            return outcome


def code_of(error: RopewalkError) -> str:
    """Returns the name of the exception as an error code: NotFound becomes not_found."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


UNSUPPORTED: Final = "unsupported"
TRIES_MAX: Final = 50
"""A fold is given up after this many tries, each of which met a changed value."""
CONTENDED: Final = ErrorInfo(
    category=Category.SYSTEM, code="contended", message="the group's value kept changing while this was folded into it"
)

Fold: TypeAlias = Callable[[Any, Any], Any]
Batch: TypeAlias = "list[tuple[Attempt, Settlement]]"
_Group: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class PendingFold:
    """A function of the user's and the value that it adds to the group's value, until the attempt is settled."""

    function: Fold
    value: object
    tries: int = 0
    refused: RopewalkError | None = None
    """The error by which the store refused the last try; None if it refused none."""
    reported: bool = False
    """Whether the exception of the function has been reported to on_error."""


def pending_fold(returned: object) -> PendingFold | None:
    """Returns the fold that a handler asked for by its return value; None if no function folds that value."""
    function = fold_of(returned)
    if function is None:
        return None
    return PendingFold(function, cast("Result[object, object]", returned).value)


class Folding:
    """Calls the folding functions of the users for a batch of settlements."""

    def __init__(self, worker_context: WorkerContext) -> None:
        self._worker_context = worker_context

    async def fold(self, batch: Batch) -> tuple[Batch, Batch]:
        """Folds the first contribution to each group. Returns the settlements to send now, and those that have to wait
        for the next batch because they fold into the same groups."""
        first: dict[_Group, tuple[Attempt, Settlement]] = {}
        plain: Batch = []
        later: Batch = []
        for item in batch:
            if item[0].fold is None:
                plain.append(item)
            elif first.setdefault(_group(item[0]), item) is not item:
                later.append(item)
        values = await self._current_values(first)
        folded = [
            (attempt, self._folded(attempt, settlement, values[group]))
            for group, (attempt, settlement) in first.items()
        ]
        return folded + plain, later

    async def _current_values(self, groups: Iterable[_Group]) -> dict[_Group, GroupValue]:
        values = dict.fromkeys(groups, NOTHING)
        workflows = WORKFLOWS.of(self._worker_context.store)
        for tenant in {tenant for tenant, _ in values}:
            found = await workflows.groups(tenant, [group_id for of, group_id in values if of == tenant])
            values.update({(tenant, group_id): record.value for group_id, record in found.items()})
        return values

    def _folded(self, attempt: Attempt, settlement: Settlement, current: GroupValue) -> Settlement:
        pending, plan = attempt.fold, settlement.plan
        assert pending is not None and plan is not None and plan.contribution is not None
        if pending.refused is not None and plan.contribution.expected_version == current.version:
            # The value has not changed since, so the store refused the settlement for another reason.
            attempt.fold = None
            return refused_for_good(attempt, pending.refused, self._worker_context)
        if pending.tries >= TRIES_MAX:
            return self._given_up(attempt, Errored(CONTENDED))
        pending.tries += 1
        value, failed = self._over(current, attempt, pending)
        folded = structs.replace(plan.contribution, value=value, error=failed, expected_version=current.version)
        return structs.replace(settlement, plan=structs.replace(plan, contribution=folded))

    def _over(self, current: GroupValue, attempt: Attempt, pending: PendingFold) -> tuple[bytes | None, str | None]:
        """Calls the function. Returns the next value of the group, or None and the reason why there is no value.

        The job has completed: an exception of the function makes only its group fail.
        """
        if current.conflict is not None or current.reducer == "final":
            return None, current.conflict  # The value is unknown, or it is final.
        try:
            return guarded(self._encoded, current, pending), None
        except Exception as error:
            if not pending.reported:
                pending.reported = True
                self._worker_context.events.report(error, "append")
            name = getattr(pending.function, "__qualname__", "a function")
            shown = error_info(error, secrets=attempt.job_type.hidden_names(self._worker_context.logs.secret_keys))
            return None, clipped(f"append={name} of {attempt.job.type} raised {shown.type}: {shown.message}")

    def _encoded(self, current: GroupValue, pending: PendingFold) -> bytes:
        codec = self._worker_context.codec
        so_far = None
        if current.reducer == "custom" and current.value is not None:
            so_far = codec.decode(current.value, Any)
        data = codec.encode(pending.function(so_far, pending.value), Any)
        limit = self._worker_context.bounds.result_bytes_max
        if len(data) > limit:
            raise LimitExceeded(f"the group's value is {len(data):,} bytes, over result_bytes_max={limit:,}")
        return data

    def _given_up(self, attempt: Attempt, outcome: Outcome) -> Settlement:
        attempt.fold = None
        worker_context = self._worker_context
        backoff = retry.resolve(attempt.job.backoff, attempt.job_type.options.backoff, worker_context.defaults.backoff)
        return decide(attempt.job, outcome, backoff, worker_context.runtime.random(), attempt.timing)


def _group(attempt: Attempt) -> _Group:
    return attempt.job.tenant, attempt.job.group_id or attempt.job.id
