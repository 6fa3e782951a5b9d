"""A batch with `atomic=False`: every job that the store accepts is enqueued, and every other job gets an error of its
own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ropewalk.definitions.job import Job
from ropewalk.domain.workflow.graph import in_order
from ropewalk.errors import InvalidInput, PartlyEnqueued, RopewalkError, StoreUnavailable
from ropewalk.ports.store.submission import Accepted, Submission

if TYPE_CHECKING:
    from ropewalk.client.app_state import AppState


async def submit_in_part(app_state: AppState, submissions: Sequence[Submission]) -> list[Accepted | RopewalkError]:
    """Returns an answer or an error for each job, in order. Raises StoreUnavailable if the store was away before any
    job was enqueued."""
    answers: list[Accepted | RopewalkError] = []
    away: StoreUnavailable | None = None
    for submission in submissions:
        if away is None:
            try:
                answers += await _submit(app_state, submission)
                continue
            except StoreUnavailable as error:
                if not any(isinstance(each, Accepted) for each in answers):
                    raise
                away = error
        answers += [away] * len(submission.jobs)
    return answers


async def _submit(app_state: AppState, submission: Submission) -> Sequence[Accepted | RopewalkError]:
    """Submits all jobs together, which costs least. If that is refused, it submits each job alone, and parents before
    the jobs that depend on them."""
    jobs = submission.jobs
    try:
        [accepted] = await app_state.submit([submission])
    except StoreUnavailable:
        raise
    except RopewalkError as refused:
        if len(jobs) == 1:
            return [refused]
    else:
        return accepted
    try:
        ordered = in_order(jobs)
    except InvalidInput as circle:
        return [circle] * len(jobs)
    answers = await app_state.submit_each([Submission(jobs=[new]) for new in ordered])
    by_job = {
        id(new): answer if isinstance(answer, RopewalkError) else answer[0]
        for new, answer in zip(ordered, answers, strict=True)
    }
    return [by_job[id(new)] for new in jobs]


def partly_enqueued(jobs: Sequence[Job[Any, Any]], results: Sequence[object]) -> PartlyEnqueued:
    """Returns the error of a batch. `results` contains a handle or an error for each job, and at least one error."""
    refused = [(at, each) for at, each in enumerate(results) if isinstance(each, RopewalkError)]
    at, first = refused[0]
    error = PartlyEnqueued(
        f"{len(refused):,} of {len(jobs):,} jobs were not queued; the first of them, at position {at} "
        f"({jobs[at].type.name}): {first}",
        results=results,
    )
    error.__cause__ = first
    return error
