"""From the outcome that a remote worker sends to the outcome that the library settles."""

from __future__ import annotations

from typing import Any, Final, assert_never

from msgspec import UNSET, UnsetType, structs

from ropewalk.definitions.results.children import child_of
from ropewalk.definitions.results.results import Append, Said
from ropewalk.definitions.results.returned import contribution_of
from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.jobs import outcome as library
from ropewalk.domain.jobs.flags import GROUPED, OWNS_SCOPE, STEPPED
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.time import SECOND, Span, to_instant
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension
from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.http.call import Call
from ropewalk.http.errors import HttpError, invalid
from ropewalk.http.jobs.shapes import JobSubmission
from ropewalk.http.jobs.submission import check_reach, new_job, submission_error
from ropewalk.http.remote_workers.held import Held
from ropewalk.http.remote_workers.outcome_shapes import (
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Expired,
    Failed,
    Outcome,
    Reducer,
    Released,
    Retry,
    Suspended,
    SuspensionKind,
    TimedOut,
    WorkError,
)
from ropewalk.http.remote_workers.values import result_as_stored
from ropewalk.http.wire import seconds
from ropewalk.ports.store.capabilities import WORKFLOWS

_APPEND: Final[dict[Reducer, Append]] = {
    Reducer.LIST: "list",
    Reducer.COUNT: "count",
    Reducer.SUM: "sum",
    Reducer.MIN: "min",
    Reducer.MAX: "max",
    Reducer.MERGE: "merge",
}
_TIMED_OUT: Final = WorkError(message="the attempt ran longer than its timeout", code="timeout")


async def outcome_of(call: Call[Any, Any], held: Held, job: JobRecord, sent: Outcome) -> library.Outcome:
    """Returns the outcome of an attempt. Raises RopewalkError and HttpError for one that cannot be settled so."""
    match sent:
        case Completed():
            return _completed(call, job, sent)
        case Retry(error=error, after=after):
            return library.Errored(_error(held, sent, error, Category.TEMPORARY), _span_or_none(after, "after"))
        case TimedOut(error=error, after=after):
            info = _error(held, sent, error or _TIMED_OUT, Category.TIMEOUT)
            return library.Errored(info, _span_or_none(after, "after"))
        case Crashed(error=error):
            return library.Crashed(_error(held, sent, error, Category.WORKER_LOST))
        case Failed(error=error):
            return library.Aborted(_error(held, sent, error, Category.PERMANENT))
        case Expired():
            return library.Expired()
        case Deferred():
            return _deferred(sent)
        case Suspended():
            return library.Suspended(await _suspension(call, job, sent))
        case Cancelled(error=error):
            return library.Cancelled(_error(held, sent, error, Category.CANCELLED) if error else None)
        case Released(delay=delay):
            return library.Released(_span(delay, "delay"))
        case _:
            assert_never(sent)


def child(call: Call[Any, Any], parent: JobRecord, wanted: JobSubmission, *, field: str) -> NewJob:
    """Returns a job that a running job enqueues. Raises HttpError, whose details lie within `field`."""
    try:
        new = new_job(call.service, wanted, parent.tenant)
        check_reach(call.identity, new)
        return structs.replace(child_of(parent, new), report_orphan=False)
    except HttpError as error:
        raise error.within(field) from error
    except RopewalkError as error:
        raise submission_error(error).within(field) from error


def _completed(call: Call[Any, Any], job: JobRecord, sent: Completed) -> library.Completed:
    app_state, job_type = call.service.app_state, call.service.registry.get(job.type)
    continuation = None if not sent.continuation else child(call, job, sent.continuation, field="continuation")
    data = None
    if continuation is None:  # A job that continues leaves its result to the next one.
        data = result_as_stored(sent.output, job_type, limit=app_state.bounds.result_bytes_max)
    children = tuple(child(call, job, each, field=f"children[{place}]") for place, each in enumerate(sent.children))
    if len(children) > app_state.bounds.children_max:
        raise InvalidInput(
            f"{len(children)} children, over children_max={app_state.bounds.children_max}", field="children"
        )
    said = _said(sent)
    alone = not job.flags & (GROUPED | OWNS_SCOPE)
    contributes = said.contributes and (bool(children) or not alone or said.append is not None)
    if not (children or continuation or contributes):
        return library.Completed(data)
    WORKFLOWS.of(call.store)
    contribution = contribution_of(said, job.type, data) if contributes else None
    return library.Completed(
        data, CompletionPlan(children=children, continuation=continuation, contribution=contribution)
    )


def _said(sent: Completed) -> Said:
    """Returns what a Python handler would have said with ctx.result(output, append=..., final=...)."""
    reducer = sent.contribution.reducer if sent.contribution else Reducer.LAST
    return Said(value=sent.output, final=reducer is Reducer.FINAL, append=_APPEND.get(reducer))


def _error(held: Held, sent: Outcome, error: WorkError, category: Category) -> ErrorInfo:
    took = None if sent.duration_ms is UNSET else int(sent.duration_ms) * 1000
    return ErrorInfo(
        category=category if error.category is UNSET else error.category.category,
        message=clipped(_storable(error.message)),
        code=error.code or None,
        traceback=clipped(_storable(error.stack_trace)) if error.stack_trace else None,
        context={_storable(name): _storable(value) for name, value in error.context.items()},
        worker=held.card.id,
        host=held.card.host,
        duration_us=took,
    )


def _storable(text: str) -> str:
    """PostgreSQL cannot store NUL in text."""
    return text.replace("\x00", "\\x00")


def _deferred(sent: Deferred) -> library.Deferred:
    if (sent.delay is UNSET) == (sent.at is UNSET):
        raise invalid("a deferred job names either delay or at", field="delay")
    if sent.at is not UNSET:
        return library.Deferred(at=to_instant(sent.at, "at"))
    return library.Deferred(delay_us=_span(sent.delay, "delay") if sent.delay is not UNSET else 0)


async def _suspension(call: Call[Any, Any], job: JobRecord, sent: Suspended) -> Suspension:
    """Returns the suspension. The end of a wait that an earlier suspension stored at the same step stays."""
    workflows = WORKFLOWS.of(call.store)
    span = _span_or_none(sent.span, "for")
    if sent.kind is SuspensionKind.SLEEP and span is None:
        raise invalid("a sleep says in `for` how long it lasts", field="for")
    if (sent.kind is SuspensionKind.SIGNAL) != bool(sent.signal):
        raise invalid("a wait for a signal names the signal, and a sleep does not", field="signal")
    stored = await workflows.steps(job.seq) if job.flags & STEPPED else []
    until = next((each.until for each in stored if each.position == sent.position and each.name == sent.name), None)
    return Suspension(
        position=int(sent.position), name=sent.name, signal=sent.signal or None, span_us=span, until=until
    )


def _span(value: str | float, field: str) -> Span:
    return round(seconds(value, field) * SECOND)


def _span_or_none(value: str | float | UnsetType | None, field: str) -> Span | None:
    return None if value is None or value is UNSET else _span(value, field)
