"""Submitting jobs: one, or many at once."""

from __future__ import annotations

from ropewalk.http.answer import Reply
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.shapes import DryRun, JobSubmission, SubmissionResult
from ropewalk.http.jobs.submission import as_if_accepted, derived_id, new_job, submission_result
from ropewalk.http.routing import Routes
from ropewalk.ports.store.submission import Submission

routes = Routes("jobs")


@routes.post(
    "/jobs",
    role=Role.SUBMIT,
    statuses=(201, 200),
    errors=(ErrorCode.DUPLICATE, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.QUOTA_EXCEEDED),
    example={"type": "add", "payload": {"a": 1, "b": 2}},
    audited=False,
)
async def enqueue(call: Call[JobSubmission, DryRun]) -> Reply[SubmissionResult]:
    """Enqueue a job.

    Answers 201 for a new job, and 200 if the same job was there already. An Idempotency-Key makes a repeat of the
    request find the job of the first one.
    """
    key = call.request.headers.get("idempotency-key")
    own_id = None if key is None else derived_id(call.tenant, "enqueue", key)
    new = new_job(call.service, call.body, call.tenant, derived_id=own_id)
    if call.query.dry_run:
        return Reply(as_if_accepted(new, await call.store.clock()))
    [[accepted]] = await call.service.core.submit([Submission(jobs=[new])])
    return Reply(submission_result(new, accepted), 200 if accepted.duplicate else 201)
