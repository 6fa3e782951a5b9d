"""The worker's side of `ctx.transaction()`: the job is settled in the handler's own transaction and not by the
settler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.handler_exceptions import BAD_RESULT, AbortWithCode
from ropewalk.definitions.results.returned import fold_of, outcome_of_return
from ropewalk.domain.jobs.outcome import Aborted, Completed, Outcome
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.transition import decide
from ropewalk.domain.time import SECOND
from ropewalk.errors import Abort, InvalidInput
from ropewalk.ports.store.capabilities import USER_TRANSACTIONS, WORKFLOWS
from ropewalk.ports.store.leases import Settled
from ropewalk.ports.store.user_transactions import UserTransaction
from ropewalk.worker.context import WorkerContext

if TYPE_CHECKING:
    from ropewalk.worker.attempt import Attempt

LIMIT_US: Final = 5 * SECOND
"""A handler's transaction may stay open for this long at most."""
LEASE_SHARE: Final = 6
"""It may stay open for this fraction of a lease at most, because a store with one writer cannot renew leases
meanwhile."""


def begin(attempt: Attempt, worker_context: WorkerContext) -> UserTransaction:
    """Begins the transaction of a handler, which the store ends after a part of the lease."""
    return USER_TRANSACTIONS.of(worker_context.store).transaction(min(LIMIT_US, attempt.lease_us // LEASE_SHARE))


async def commit(
    attempt: Attempt, worker_context: WorkerContext, transaction: UserTransaction, context: Context, returned: object
) -> Settled:
    """Completes the job in the handler's transaction and commits. Returns the answer to the settlement.

    If anything keeps the job from completing, the handler's writes are undone, too.
    """
    try:
        outcome = _completed(attempt, worker_context, context, returned)
        attempt.note_timing(attempt.elapsed())
        settlement = decide(attempt.job, outcome, BUILT_IN, 0.0, attempt.timing)
        answers = await transaction.settle(worker_context.owner, attempt.with_lines(settlement))
    finally:
        await transaction.rollback()
    [answer] = answers.settled
    if answer.refused is not None:
        raise Abort(answer.refused)
    if answer.move is not None:
        attempt.handed_over = True
        worker_context.settled_elsewhere([(attempt, settlement)], answers)
    return answer


def _completed(attempt: Attempt, worker_context: WorkerContext, context: Context, returned: object) -> Outcome:
    if fold_of(returned) is not None:
        raise InvalidInput("append= with a function needs a transaction of its own: use a built-in one here")
    strict = worker_context.defaults.strict_return
    outcome = outcome_of_return(attempt.job_type, context, returned, worker_context.bounds, strict=strict)
    if isinstance(outcome, Aborted):
        raise AbortWithCode(InvalidInput(outcome.error.message), outcome.error.code or BAD_RESULT)
    if isinstance(outcome, Completed) and outcome.plan is not None:
        WORKFLOWS.of(worker_context.store)
    assert isinstance(outcome, Completed), f"a handler that suspends itself does not come here: {outcome}"
    return outcome
