"""What a handler's return value means for its attempt. Runs wherever the handler ran."""

from __future__ import annotations

from typing import Any, cast

from ropewalk.definitions.context import Context
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.result import Result
from ropewalk.definitions.verdict import bad_input
from ropewalk.domain.limits import Limits
from ropewalk.domain.outcome import Completed, Outcome
from ropewalk.errors import InvalidInput, LimitExceeded


def outcome_of_return(
    job_type: JobType[..., Any, Any], context: Context, value: object, limits: Limits, *, strict: bool
) -> Outcome:
    """`strict` is the app's word on Results that were made and not returned; the type's own comes first."""
    own = job_type.options.strict_return
    if strict if own is None else own:
        lost = context.unreturned(value)
        if lost:
            raise RuntimeError(f"{len(lost)} Result(s) were created by ctx and not returned: return them")
    if isinstance(value, Result):
        value = cast("Result[object, object]", value).value
    try:
        data = job_type.encode_result(value)
        _check_size(data, limits.result_bytes_max, job_type.name)
    except InvalidInput as error:
        return bad_input(error, "bad_result")
    return Completed(data)


def _check_size(data: bytes | None, limit: int, name: str) -> None:
    if data is not None and len(data) > limit:
        raise LimitExceeded(
            f"the result of {name} is {len(data):,} bytes, over result_bytes_max={limit:,}: "
            "store it elsewhere and return a reference, or raise the limit with App(limits=...)",
            field="result",
        )
