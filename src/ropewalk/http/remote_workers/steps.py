"""Steps that remote workers record."""

from __future__ import annotations

from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import LimitExceeded
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.remote_workers.shapes import StepResult
from ropewalk.http.remote_workers.values import as_stored
from ropewalk.ports.store.capabilities import WORKFLOWS


async def finished_step(call: Call[StepResult, NoQuery], job: JobRecord) -> StepRecord:
    """Returns the step to store.

    At the position of an unfinished wait it says that the wait is over, as a Python handler records a wait for a signal
    that timed out. Raises HttpError if another step is stored at this position.
    """
    body, bounds = call.body, call.service.app_state.bounds
    if body.position >= bounds.steps_max:
        raise LimitExceeded(f"step {body.name!r} is over steps_max={bounds.steps_max:,}", field="position")
    value = as_stored(body.value, limit=bounds.result_bytes_max, field="value")
    stored = await WORKFLOWS.of(call.store).steps(job.seq) if job.flags & STEPPED else []
    before = next((each for each in stored if each.position == body.position), None)
    if before is not None and before.name != body.name:
        message = f"step {body.position} is {body.name!r} now and was {before.name!r} before"
        raise HttpError(ErrorCode.CONFLICT, message, reason="nondeterministic")
    step = StepRecord(position=int(body.position), name=body.name, kind="step", value=value)
    if before is None or before.kind == "step":
        return step
    return StepRecord(position=step.position, name=step.name, kind=before.kind, value=value, until=before.until)
