"""`@batch_job`: makes a job type whose handler gets many jobs at once; each is queued, retried and settled alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeGuard, TypeVar, Unpack, cast, overload

from msgspec import structs

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.batch_items import ITEM, Batch
from ropewalk.definitions.job_types.decorator import AsyncFunctionRefused
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import BatchOptions, JobTypeOptions, TypeOptions, type_options
from ropewalk.definitions.policies import most_at_once
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import clipped
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.time import Seconds, to_span
from ropewalk.errors import DefinitionError, InvalidInput

I = TypeVar("I")  # noqa: E741 # as in list[I]: an item
O = TypeVar("O")  # noqa: E741 # an output
S = TypeVar("S")
G = TypeVar("G")
E = TypeVar("E")

Outputs: TypeAlias = Sequence[E] | Mapping[int, E]
"""What a handler returns: one output for each item in order, or some outputs by the position of their item."""

MISSING: Final = object()
"""Stands for the output of an item for which none was returned."""


class _Decorator:
    """The options of a batch type, kept until the decorator gets the function."""

    def __init__(self, batch: BatchOptions, name: str | None, options: dict[str, object]) -> None:
        self._batch = batch
        self._name = name
        self._options = options

    def _make(self, function: Callable[..., object]) -> JobType[..., Any, Any]:
        shown = getattr(function, "__qualname__", repr(function))
        options = structs.replace(type_options(self._options, shown), batch=self._batch)
        _check_fits(options, shown)
        return JobType(function, options, self._name)


class BatchDecorator(_Decorator):
    """The decorator for handlers that may be async."""

    @overload
    def __call__(
        self, function: Callable[[list[I]], Coroutine[Any, Any, Outputs[Result[S, G] | Exception]]], /
    ) -> JobType[[I], S, G]: ...
    @overload
    def __call__(
        self, function: Callable[[Batch[I]], Coroutine[Any, Any, Outputs[Result[S, G] | Exception]]], /
    ) -> JobType[[I], S, G]: ...
    @overload
    def __call__(
        self, function: Callable[[list[I]], Coroutine[Any, Any, Outputs[O | Exception]]], /
    ) -> JobType[[I], O, O]: ...
    @overload
    def __call__(
        self, function: Callable[[Batch[I]], Coroutine[Any, Any, Outputs[O | Exception]]], /
    ) -> JobType[[I], O, O]: ...
    @overload
    def __call__(self, function: Callable[[list[I]], Outputs[Result[S, G] | Exception]], /) -> JobType[[I], S, G]: ...
    @overload
    def __call__(self, function: Callable[[Batch[I]], Outputs[Result[S, G] | Exception]], /) -> JobType[[I], S, G]: ...
    @overload
    def __call__(self, function: Callable[[list[I]], Outputs[O | Exception]], /) -> JobType[[I], O, O]: ...
    @overload
    def __call__(self, function: Callable[[Batch[I]], Outputs[O | Exception]], /) -> JobType[[I], O, O]: ...
    def __call__(self, function: Callable[..., object]) -> JobType[..., Any, Any]:
        return self._make(function)


class PlainBatchDecorator(_Decorator):
    """The decorator for handlers that run in a thread, which must be plain functions."""

    @overload
    def __call__(self, function: Callable[..., Coroutine[Any, Any, Any]], /) -> AsyncFunctionRefused: ...
    @overload
    def __call__(self, function: Callable[[list[I]], Outputs[Result[S, G] | Exception]], /) -> JobType[[I], S, G]: ...
    @overload
    def __call__(self, function: Callable[[Batch[I]], Outputs[Result[S, G] | Exception]], /) -> JobType[[I], S, G]: ...
    @overload
    def __call__(self, function: Callable[[list[I]], Outputs[O | Exception]], /) -> JobType[[I], O, O]: ...
    @overload
    def __call__(self, function: Callable[[Batch[I]], Outputs[O | Exception]], /) -> JobType[[I], O, O]: ...
    def __call__(self, function: Callable[..., object]) -> JobType[..., Any, Any] | AsyncFunctionRefused:
        return self._make(function)


@overload
def batch_job(
    *,
    size: int = ...,
    max_wait: Seconds = ...,
    max_batches: int | None = ...,
    executor: Literal["thread"],
    **options: Unpack[JobTypeOptions],
) -> PlainBatchDecorator: ...
@overload
def batch_job(
    *,
    size: int = ...,
    max_wait: Seconds = ...,
    max_batches: int | None = ...,
    executor: Literal["auto"] = ...,
    **options: Unpack[JobTypeOptions],
) -> BatchDecorator: ...
def batch_job(
    *,
    size: int = 50,
    max_wait: Seconds = 0.1,
    max_batches: int | None = None,
    executor: Literal["auto", "thread"] = "auto",
    **options: Unpack[JobTypeOptions],
) -> BatchDecorator | PlainBatchDecorator:
    """`@batch_job(size=50)` makes a job type whose handler gets up to `size` items, as list[I] or Batch[I].

    The handler returns one output for each item, in order. An exception or a Result among them is the outcome of that
    job alone. It may also return a dict of outputs by position, where 0 is the first item; a job without one fails.

    A batch that is not full waits `max_wait` seconds for more jobs. All jobs of a batch have the same tenant and queue.
    A worker runs at most `max_batches` of them at once; None means as many as it has slots.
    """
    given: dict[str, object] = {"executor": executor, **options}
    try:
        batch = BatchOptions(
            size=checks.positive(size, "size"),
            max_wait_us=to_span(max_wait, "max_wait"),
            max_batches=checks.positive_or_none(max_batches, "max_batches"),
        )
        name = checks.text(given.pop("name"), "name") if "name" in given else None
    except InvalidInput as error:
        raise DefinitionError(f"@batch_job: {error}") from error
    if executor not in ("auto", "thread"):
        raise DefinitionError(f"@batch_job: executor={executor!r} must be 'auto' or 'thread'")
    kind = BatchDecorator if executor == "auto" else PlainBatchDecorator
    return kind(batch, name, given)


def _check_fits(options: TypeOptions, function: str) -> None:
    """Raises DefinitionError if a full batch is larger than the type's concurrency, which counts jobs."""
    most = None if options.concurrency is None else most_at_once(options.concurrency)
    assert options.batch is not None
    if most is not None and most < options.batch.size:
        raise DefinitionError(
            f"@batch_job on {function}: concurrency={most} counts every item and is less than "
            f"size={options.batch.size}: a batch could never be full"
        )


def item_of(job_type: JobType[..., Any, Any], data: bytes) -> object:
    """The decoded input of one job of a batch type. Raises InvalidInput."""
    return job_type.decode_input(data)[ITEM]


def argument_of(job_type: JobType[..., Any, Any], items: list[Any], contexts: Sequence[Context]) -> object:
    """The argument with which the handler is called."""
    return Batch(items, tuple(contexts)) if job_type.resolve().wants_contexts else items


def outcomes_of_batch(
    job_type: JobType[..., Any, Any],
    contexts: Sequence[Context],
    value: object,
    bounds: Bounds,
    *,
    strict: bool,
    classify: Callable[[BaseException, int], Outcome],
) -> list[Outcome]:
    """The outcome of each job, in order, from the value that the handler returned.

    It never raises, because an error of one item must not fail the others. `classify` returns the outcome of an
    exception in the attempt with this number.
    """
    outputs = outputs_of(value, len(contexts))
    if outputs is None:
        given = f"{len(value)} outputs" if _is_sequence(value) else _described(value)
        wrong = ValueError(f"{job_type.name} was given {len(contexts)} items and returned {given}: return one for each")
        return [classify(wrong, context.attempt) for context in contexts]
    return [
        classify(_missing(job_type, at, len(contexts)), context.attempt)
        if output is MISSING
        else _outcome(job_type, context, output, bounds, strict=strict, classify=classify)
        for at, (context, output) in enumerate(zip(contexts, outputs, strict=True))
    ]


def outputs_of(value: object, count: int) -> Sequence[object] | None:
    """The output of each item, or MISSING; None if it is not clear which output belongs to which item."""
    if isinstance(value, Mapping):
        by_position = cast("Mapping[object, object]", value)
        known = all(isinstance(at, int) and not isinstance(at, bool) and 0 <= at < count for at in by_position)
        return [by_position.get(at, MISSING) for at in range(count)] if known else None
    return value if _is_sequence(value) and len(value) == count else None


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _described(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        keys = clipped(", ".join(map(repr, cast("Mapping[object, object]", value))))
        return f"a {kind} with the keys {keys}, which are not all positions"
    return f"a {kind}"


def _missing(job_type: JobType[..., Any, Any], at: int, count: int) -> ValueError:
    return ValueError(
        f"{job_type.name} returned no output for the item at position {at} of its {count}: return one for each, or an "
        "exception for one that failed"
    )


def _outcome(
    job_type: JobType[..., Any, Any],
    context: Context,
    output: object,
    bounds: Bounds,
    *,
    strict: bool,
    classify: Callable[[BaseException, int], Outcome],
) -> Outcome:
    if isinstance(output, BaseException):
        return classify(output, context.attempt)
    try:
        return outcome_of_return(job_type, context, output, bounds, strict=strict)
    except Exception as error:
        return classify(error, context.attempt)
