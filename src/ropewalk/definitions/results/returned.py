"""Makes an outcome of what a handler returned, with the contribution to the value of its group.

This runs where the handler ran, in the worker or in a handler's process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.classify import bad_result, never_awaited
from ropewalk.definitions.results.completion_plan import children_of, continuation_of
from ropewalk.definitions.results.results import Fold, Result, Said
from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.outcome import Completed, Outcome, Suspended
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.errors import InvalidInput, LimitExceeded


def contribution_of(said: Said, job_type: str, data: bytes | None) -> Contribution:
    """What the job adds to the value of its group; `data` is its encoded value.

    Raises InvalidInput for a value that `append=` cannot fold.
    """
    match said.append:
        case None:
            return Contribution(type=job_type, value=data, reducer="final" if said.final else "last")
        case "list":
            return Contribution(type=job_type, value=data, reducer="list")
        case "count":
            return Contribution(type=job_type, value=None, reducer="count")
        case "merge":
            if not isinstance(said.value, Mapping):
                raise _wrong_value(said, "a mapping")
            return Contribution(type=job_type, value=data, reducer="merge")
        case "sum" | "min" | "max" as append:
            # The store folds it, so it is a plain number, whatever codec the type has.
            return Contribution(type=job_type, value=msgspec.json.encode(_number(said)), reducer=append)
        case _:
            return Contribution(type=job_type, value=data, reducer="custom")


def _number(said: Said) -> int | float:
    value = said.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
        raise _wrong_value(
            said, "a finite int or float: give a function as append= to fold other values, such as Decimal"
        )
    return int(value) if isinstance(value, int) else float(value)


def _wrong_value(said: Said, wanted: str) -> InvalidInput:
    given = type(said.value).__name__  # its annotation, which may say that it is secret, is not known here
    return InvalidInput(
        f"ctx.result(..., append={said.append!r}) takes {wanted}, not a value of type {given}", field="result"
    )


def outcome_of_return(
    job_type: JobType[..., Any, Any], context: Context, value: object, bounds: Bounds, *, strict: bool
) -> Outcome:
    """The outcome of an attempt whose handler returned this value.

    `strict` says whether Results that were made and not returned are an error, unless the type says it itself. The
    contribution of a custom fold has no expected_version yet; `fold_of` returns the function.
    """
    forgotten = context.never_awaited()
    if forgotten is not None:
        return never_awaited(forgotten)
    suspension = context.steps_ended()
    if suspension is not None:
        return Suspended(suspension)
    own = job_type.options.strict_return
    if strict if own is None else own:
        lost = context.unreturned(value)
        if lost:
            raise RuntimeError(f"{len(lost)} Result(s) were created by ctx and not returned: return them")
    try:
        if context.alone and not _is_result(value):
            return Completed(_encoded_result(value, job_type, bounds))  # most jobs: the group's value is its result
        said = _content_of(value)
        # A job that continues leaves its result to the next one.
        data = _encoded_result(said.value, job_type, bounds) if said.continuation is None else None
        return Completed(data, _plan(said, data, context, bounds))
    except InvalidInput as error:
        return bad_result(error)


def fold_of(value: object) -> Fold | None:
    """The function that folds this value into the value of the group, if `append=` is a function."""
    append = _content_of(value).append
    return None if append is None or isinstance(append, str) else append


def _is_result(value: object) -> bool:
    return isinstance(value, Result)


def _content_of(value: object) -> Said:
    return cast("Result[object, object]", value).said if isinstance(value, Result) else Said(value=value)


def _plan(said: Said, data: bytes | None, context: Context, bounds: Bounds) -> CompletionPlan | None:
    """What is written together with the completion; None if nothing follows and the job is alone in its group."""
    children = children_of(said, context.port, context.child_ids, bounds) if said.cohorts else ()
    continuation = continuation_of(said, context.port)
    contributes = said.contributes and (bool(children) or not context.alone or said.append is not None)
    if not (children or continuation or contributes):
        return None
    contribution = contribution_of(said, context.type, data) if contributes else None
    return CompletionPlan(children=children, continuation=continuation, contribution=contribution)


def _encoded_result(value: object, job_type: JobType[..., Any, Any], bounds: Bounds) -> bytes | None:
    checks.not_an_outcome(value, job_type.name)
    data, limit = job_type.resolve().returns.encode(value), bounds.result_bytes_max
    if data is not None and len(data) > limit:
        raise LimitExceeded(
            f"the result of {job_type.name} is {len(data):,} bytes, over result_bytes_max={limit:,}: "
            "store it elsewhere and return a reference, or raise the limit with App(bounds=...)",
            field="result",
        )
    return data
