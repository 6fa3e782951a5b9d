"""Submitting jobs: one, or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UnsetType

from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import RopewalkError
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.shapes import (
    BatchResult,
    BatchSubmission,
    DryRun,
    JobSubmission,
    SubmissionResult,
    SubmissionStatus,
)
from ropewalk.http.jobs.submission import (
    as_if_accepted,
    check_reach,
    derived_id,
    new_job,
    rejected,
    submission_error,
    submission_result,
)
from ropewalk.http.routing import Routes
from ropewalk.ports.store.submission import Submission

routes = Routes("jobs")


@routes.post(
    "/jobs",
    role=Role.SUBMIT,
    statuses=(201, 200),
    errors=(ErrorCode.DUPLICATE, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.QUOTA_EXCEEDED),
    example={"type": "add", "payload": {"a": 1, "b": 2}},
    headers=("Idempotency-Key",),
    audited=False,
)
async def enqueue(call: Call[JobSubmission, DryRun]) -> Reply[SubmissionResult]:
    """Enqueue a job.

    Answers 201 for a new job, and 200 if the same job was there already. An Idempotency-Key makes a repeat of the
    request find the job of the first one.
    """
    key = call.request.headers.get("idempotency-key")
    own_id = None if key is None else derived_id(call.tenant, "enqueue", key)
    new = _new(call, call.body, own_id)
    if call.query.dry_run:
        return Reply(as_if_accepted(new, await call.store.clock()))
    try:
        [[accepted]] = await call.service.app_state.submit([Submission(jobs=[new])])
    except RopewalkError as error:
        raise submission_error(error) from error
    return Reply(submission_result(new, accepted), 200 if accepted.duplicate else 201)


@routes.post(
    "/jobs/batch",
    role=Role.SUBMIT,
    errors=(ErrorCode.DUPLICATE, ErrorCode.CONFLICT, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.QUOTA_EXCEEDED),
    example={"jobs": [{"type": "add", "payload": {"a": 1, "b": 2}}], "atomic": True},
    headers=("Idempotency-Key",),
    audited=False,
)
async def enqueue_batch(call: Call[BatchSubmission, DryRun]) -> BatchResult:
    """Enqueue up to 1,000 jobs.

    An atomic batch is stored whole or refused whole, with the error of the first job that does not fit. Otherwise each
    job is stored or rejected on its own, and the answer says which.
    """
    key = call.request.headers.get("idempotency-key")
    made: list[NewJob | HttpError] = []
    for index, wanted in enumerate(call.body.jobs):
        own_id = None if key is None else derived_id(call.tenant, "enqueue_batch", key, index)
        try:
            made.append(_new(call, wanted, own_id))
        except (HttpError, RopewalkError) as error:
            refusal = error if isinstance(error, HttpError) else submission_error(error)
            if call.body.atomic:
                raise refusal.within(f"jobs[{index}]") from error
            made.append(refusal)
    return _batch_result(call, made, await _stored(call, [each for each in made if isinstance(each, NewJob)]))


async def _stored(call: Call[BatchSubmission, DryRun], new: Sequence[NewJob]) -> list[SubmissionResult | HttpError]:
    """What became of each of these jobs."""
    if not new:
        return []
    if call.query.dry_run:
        now = await call.store.clock()
        return [as_if_accepted(job, now) for job in new]
    if call.body.atomic:
        try:
            [answers] = await call.service.app_state.submit([Submission(jobs=new)])
        except RopewalkError as error:
            raise submission_error(error) from error
        return [submission_result(job, accepted) for job, accepted in zip(new, answers, strict=True)]
    each_alone = await call.service.app_state.submit_each([Submission(jobs=[job]) for job in new])
    return [
        submission_error(answer) if isinstance(answer, RopewalkError) else submission_result(job, answer[0])
        for job, answer in zip(new, each_alone, strict=True)
    ]


def _batch_result(
    call: Call[BatchSubmission, DryRun],
    made: Sequence[NewJob | HttpError],
    stored: Sequence[SubmissionResult | HttpError],
) -> BatchResult:
    """The results in the order of the jobs, with those that were refused before they reached the store."""
    left = iter(stored)
    results: list[SubmissionResult] = []
    for index, each in enumerate(made):
        answer = each if isinstance(each, HttpError) else next(left)
        if isinstance(answer, HttpError):
            wanted = call.body.jobs[index].id
            answer = rejected(answer, call.request.id, None if isinstance(wanted, UnsetType) else wanted)
        results.append(answer)
    refused = sum(each.status is SubmissionStatus.REJECTED for each in results)
    return BatchResult(total=len(results), accepted=len(results) - refused, rejected=refused, results=results)


def _new(call: Call[Any, Any], wanted: JobSubmission, own_id: str | None) -> NewJob:
    """The job as it would be stored. Raises HttpError if the identity does not reach its type or queue."""
    new = new_job(call.service, wanted, call.tenant, derived_id=own_id)
    check_reach(call.identity, new)
    return new
