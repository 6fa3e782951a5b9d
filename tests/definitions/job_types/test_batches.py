"""W8: types that take their jobs in batches: one input each, one outcome each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.batch_decorator import argument_of, batch_job, item_of, outcomes_of_batch
from ropewalk.definitions.job_types.batch_items import Batch
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import AppDefaults, BatchOptions, EnqueueOptions
from ropewalk.definitions.results.classify import classify
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Completed, Deferred, Errored, Outcome
from ropewalk.domain.time import SECOND
from ropewalk.errors import Abort, Defer, DefinitionError, InvalidInput
from tests.definitions.attempts import attempt_of


@dataclass
class Row:
    key: str
    size: int = 1


@batch_job(size=3, max_wait=0.5, queue="bulk", name="rows")
async def insert(rows: list[Row]) -> list[int]: ...


@batch_job()
async def with_contexts(batch: Batch[str]) -> list[str | Exception]: ...


@batch_job(executor="thread")
def in_thread(numbers: list[int]) -> Sequence[Result[None, int]]: ...


@batch_job()
async def undeclared(numbers: list[int]): ...  # type: ignore[no-untyped-def]


@job
async def child(number: int) -> int: ...


@job
async def by_name(key: str) -> None: ...


@batch_job()
async def compensate(rows: list[Row]) -> list[None]: ...


# ── definition ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_options() -> None:
    assert insert.options.batch == BatchOptions(size=3, max_wait_us=SECOND // 2)
    assert (insert.name, insert.style, insert.options.queue) == ("rows", "async", "bulk")
    assert (with_contexts.name, in_thread.style) == ("with_contexts", "thread")
    assert with_contexts.options.batch == BatchOptions(size=50, max_wait_us=SECOND // 10)
    later = batch_job(max_wait=timedelta(seconds=2))(undeclared.handler)
    assert later.options.batch == BatchOptions(size=50, max_wait_us=2 * SECOND)
    few = batch_job(max_batches=2)(undeclared.handler)
    assert few.options.batch == BatchOptions(size=50, max_wait_us=SECOND // 10, max_batches=2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": 0}, "@batch_job: size=0 must be at least 1"),
        ({"size": True}, "size=True must be a whole number"),
        ({"max_wait": -1}, "max_wait=-1 is negative"),
        ({"max_batches": 0}, "@batch_job: max_batches=0 must be at least 1"),
        ({"max_batches": "2"}, "@batch_job: max_batches='2' must be a whole number"),
        ({"name": ""}, "name is empty"),
        ({"executor": "process"}, "executor='process' must be 'auto' or 'thread'"),
        ({"timeot": 3}, "'timeot' is no option of @job; did you mean 'timeout'?"),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        batch_job(**options)(undeclared.handler)
    assert told in str(refused.value)


async def takes_one(row: Row) -> list[int]: ...
async def takes_two(rows: list[Row], more: list[Row]) -> list[int]: ...
async def takes_none() -> list[int]: ...
async def takes_context(ctx: Context, rows: list[Row]) -> list[int]: ...
async def takes_bare(rows: list) -> list[int]: ...  # type: ignore[type-arg]
async def gives_one(rows: list[Row]) -> int: ...
async def gives_pairs(rows: list[Row]) -> dict[str, int]: ...
async def gives_mixed(rows: list[Row]) -> list[int | Result[int, int]]: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (takes_one, "takes exactly one parameter, annotated list[I] or Batch[I]"),
        (takes_two, "takes exactly one parameter"),
        (takes_none, "takes exactly one parameter"),
        (takes_context, "takes exactly one parameter"),
        (takes_bare, "annotated list[I]"),
        (gives_one, "returns one output for each item: annotate it as list[O]"),
        (gives_pairs, "returns one output for each item"),
        (gives_mixed, "mixes Result with plain values"),
    ],
)
def test_wrong_handlers(function: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        batch_job()(function)
    assert told in str(refused.value)


def test_names_that_are_defined_later() -> None:
    @batch_job()
    async def early(rows: list[Later]) -> list[int]: ...  # type: ignore[name-defined]  # noqa: F821 # that is the point

    with pytest.raises(DefinitionError, match="cannot be resolved"):
        early.resolve()


# ── one input ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_payload_is_the_item_itself() -> None:
    built = insert(Row("a", 2))
    assert built.input == b'{"key":"a","size":2}'
    assert built.arguments == {"item": Row("a", 2)}
    assert item_of(insert, built.input) == Row("a", 2)
    assert with_contexts("x").input == b'"x"'
    assert insert.from_arguments({"key": "a", "size": 2}).input == built.input
    assert with_contexts.from_arguments("x").input == b'"x"'
    assert insert.input_schema()["$defs"]["Row"]["properties"]["key"] == {"type": "string"}
    assert insert.result_schema() == {"type": "integer"}


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (insert, "rows takes its item as one positional argument, not 0 arguments"),
        (lambda: insert(Row("a"), Row("b")), "not 2 arguments"),  # type: ignore[call-arg]
        (lambda: insert(item=Row("a")), "takes its item as one positional argument"),  # type: ignore[call-arg]
        (lambda: insert(Row(3)), "rows: the item does not fit: expected `str`, got `int` at $.key"),  # type: ignore[arg-type]
        (lambda: insert.decode_input(b'{"size":1}'), "rows: the item does not fit"),
    ],
)
def test_wrong_inputs(build: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build()
    assert told in str(refused.value)


def test_only_a_mapping_names_arguments() -> None:
    with pytest.raises(InvalidInput, match="child: 3 is no mapping of arguments by name"):
        child.from_arguments(3)


def test_functions_of_the_input_see_the_item() -> None:
    def sized(arguments: Any) -> EnqueueOptions:
        return {"priority": arguments["item"].size}

    sorted_type = batch_job(options=sized, unique=lambda arguments: arguments["item"].key)(insert.handler)
    new = to_new_job(sorted_type(Row("a", 7)), call={}, defaults=AppDefaults(), bounds=Bounds(), tenant="t")
    assert new.priority == 7
    assert new.key is not None
    assert new.key.key == "a"


def test_compensation_takes_over_the_item() -> None:
    made = batch_job(on_failure=compensate)(insert.handler)
    new = to_new_job(made(Row("a")), call={}, defaults=AppDefaults(), bounds=Bounds(), tenant="t")
    assert new.on_failure is not None
    assert (new.on_failure.type, new.on_failure.input, new.on_failure.accepts) == ("compensate", None, None)
    with pytest.raises(DefinitionError, match="one of them takes an item, the other arguments by name"):
        batch_job(on_failure=by_name)(insert.handler).resolve()


# ── the call ────────────────────────────────────────────────────────────────────────────────────────────────────


def contexts_of(job_type: JobType[..., Any, Any], count: int) -> list[Context]:
    return [Context(attempt_of(job_type, id=f"j{number}")) for number in range(count)]


def test_what_the_handler_gets() -> None:
    contexts = contexts_of(insert, 2)
    assert argument_of(insert, [1, 2], contexts) == [1, 2]
    batch = argument_of(with_contexts, ["a", "b"], contexts)
    assert isinstance(batch, Batch)
    assert (batch.items, batch.contexts, len(batch)) == (["a", "b"], tuple(contexts), 2)


def outcomes(job_type: JobType[..., Any, Any], contexts: list[Context], value: object) -> list[Outcome]:
    def outcome_of(error: BaseException, attempt: int) -> Outcome:
        return classify(error, job_type, lambda *_: None, attempt=attempt, app_decide=None)

    return outcomes_of_batch(job_type, contexts, value, Bounds(), strict=True, classify=outcome_of)


@pytest.mark.parametrize("value", [[1, 2], (1, 2)])
def test_one_output_for_each(value: object) -> None:
    assert outcomes(insert, contexts_of(insert, 2), value) == [Completed(b"1"), Completed(b"2")]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([1], "rows was given 2 items and returned 1 outputs: return one for each"),
        ([1, 2, 3], "given 2 items and returned 3 outputs"),
        (None, "given 2 items and returned a NoneType"),
        ("ab", "returned a str"),
        (iter([1, 2]), "returned a list_iterator"),
        ({1: 2, 3: 4}, "given 2 items and returned a dict with the keys 1, 3, which are not all positions"),
        ({"a": 2}, "returned a dict with the keys 'a'"),
        ({True: 2}, "returned a dict with the keys True"),
    ],
)
def test_a_wrong_count_is_an_error_of_all(value: object, told: str) -> None:
    found = outcomes(insert, contexts_of(insert, 2), value)
    assert len(found) == 2
    for each in found:
        assert isinstance(each, Errored)
        assert told in each.error.message


def test_outputs_by_position_say_of_each_item_what_is_missing() -> None:
    first, second, third, fourth = outcomes(insert, contexts_of(insert, 4), {2: 3, 0: 1, 1: Abort("never")})
    assert (first, third) == (Completed(b"1"), Completed(b"3"))
    assert isinstance(second, Aborted)
    assert isinstance(fourth, Errored)
    assert "rows returned no output for the item at position 3 of its 4" in fourth.error.message


def test_every_item_ends_its_own_way() -> None:
    contexts = contexts_of(with_contexts, 6)
    value: list[object] = ["fine", ValueError("bad"), Abort("never"), Defer(delay=3), 3, contexts[5].result("x")]
    fine, bad, never, later, misfit, wrapped = outcomes(with_contexts, contexts, value)
    assert (fine, wrapped) == (Completed(b'"fine"'), Completed(b'"x"'))
    assert isinstance(bad, Errored) and bad.error.type == "ValueError"
    assert isinstance(never, Aborted) and never.error.category is Category.PERMANENT
    assert later == Deferred(delay_us=3 * SECOND)
    assert isinstance(misfit, Aborted) and misfit.error.code == "bad_result"


def test_an_item_may_queue() -> None:
    contexts = contexts_of(in_thread, 2)
    found = outcomes(in_thread, contexts, [contexts[0].queue(child(1)), contexts[1].void()])
    first, second = found
    assert isinstance(first, Completed) and first.plan is not None
    assert [each.parent_id for each in first.plan.children] == ["j0"]
    assert second == Completed(None)


def test_a_result_that_is_not_returned_is_the_fault_of_its_item() -> None:
    contexts = contexts_of(undeclared, 2)
    contexts[1].result(3)
    first, second = outcomes(undeclared, contexts, [1, 2])
    assert first == Completed(b"1")
    assert isinstance(second, Errored)
    assert "created by ctx and not returned" in second.error.message


async def test_what_a_batch_cannot_ask_for() -> None:
    (ctx,) = contexts_of(insert, 1)

    async def work() -> int: ...

    uses: Iterable[Any] = (
        ctx.spawn(child(1)),
        ctx.spawn_many([child(1)]),
        ctx.step("a", work),
        ctx.sleep(1),
        ctx.wait_for("a"),
    )
    for use in uses:
        with pytest.raises(Abort, match="rows takes its jobs in batches"):
            await use
    for face in (lambda: ctx.sync.step("a", int), lambda: ctx.sync.sleep(1)):
        with pytest.raises(Abort, match="rows takes its jobs in batches"):
            await asyncio.to_thread(face)


@dataclass
class Due:
    day: date


@batch_job(size=5)
async def store(dues: list[Due]) -> list[None]:
    return [None for _ in dues]


def test_the_item_of_a_batch_type_is_read_from_json_as_itself_or_as_jobs_are_shown() -> None:
    due = Due(date(2026, 1, 1))
    for given in ('{"day": "2026-01-01"}', b'{"item": {"day": "2026-01-01"}}'):
        item = store.arguments_from_json(given)
        assert item == due
        assert store.from_arguments(item).input == store(due).input
    for wrong in ('{"day": "soon"}', '{"item": {"day": "soon"}}', "3", "no json"):
        with pytest.raises(InvalidInput, match="store: the item does not fit"):
            store.arguments_from_json(wrong)
