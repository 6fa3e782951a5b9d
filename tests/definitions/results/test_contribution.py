"""W3: how a job's value joins its group's."""

from __future__ import annotations

from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.results.returned import fold_of, outcome_of_return
from ropewalk.domain.jobs.flags import GROUPED, OWNS_SCOPE
from ropewalk.domain.jobs.outcome import Aborted, Completed
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.errors import InvalidInput
from tests.definitions.attempts import attempt_of, completed, plan_of


class Level(IntEnum):
    LOW = 1


@job
async def anything(): ...  # type: ignore[no-untyped-def]


@job
async def number() -> float: ...


@pytest.fixture
def ctx() -> Context:
    port = attempt_of(anything)
    port.job.flags |= GROUPED
    return Context(port)


def contributed(ctx: Context, value: object) -> Contribution | None:
    plan = completed(ctx, value).plan
    return None if plan is None else plan.contribution


def test_a_plain_value_is_the_last_one(ctx: Context) -> None:
    assert contributed(ctx, 3) == Contribution(type="anything", value=b"3", reducer="last")
    assert contributed(ctx, ctx.result(3)) == Contribution(type="anything", value=b"3", reducer="last")


def test_nothing_contributes_nothing(ctx: Context) -> None:
    assert completed(ctx, None) == Completed(None)
    assert completed(ctx, ctx.void()) == Completed(None)


def test_final(ctx: Context) -> None:
    assert contributed(ctx, ctx.result("x", final=True)) == Contribution(type="anything", value=b'"x"', reducer="final")
    other = Context(ctx.port)
    assert contributed(other, other.result(None, final=True)) == Contribution(
        type="anything", value=None, reducer="final"
    )


@pytest.mark.parametrize("flags", [0, GROUPED, OWNS_SCOPE])
def test_a_job_alone_says_nothing_about_its_group(flags: int) -> None:
    port = attempt_of(anything)
    port.job.flags |= flags
    assert (completed(Context(port), 3).plan is None) is (flags == 0)


async def test_a_job_that_spawned_is_not_alone() -> None:
    ctx = Context(attempt_of(anything))
    await ctx.spawn_many([])
    assert completed(ctx, 3).plan is None
    await ctx.spawn(number())
    assert contributed(ctx, 3) == Contribution(type="anything", value=b"3", reducer="last")


def test_a_job_alone_may_begin_a_fold() -> None:
    ctx = Context(attempt_of(anything))
    assert plan_of(ctx, ctx.result(3, append="list")).contribution is not None


@pytest.mark.parametrize(
    ("value", "append", "stored"),
    [
        ("x", "list", b'"x"'),
        (None, "list", None),
        ("x", "count", None),
        (None, "count", None),
        (3, "sum", b"3"),
        (2.5, "min", b"2.5"),
        (-3, "max", b"-3"),
        ({"a": 1}, "merge", b'{"a":1}'),
    ],
)
def test_folds(ctx: Context, value: Any, append: Any, stored: bytes | None) -> None:
    assert contributed(ctx, ctx.result(value, append=append)) == Contribution(
        type="anything", value=stored, reducer=append
    )


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), -float("inf"), "3", None, [3], Decimal("7.00")])
@pytest.mark.parametrize("append", ["sum", "min", "max"])
def test_what_is_no_number(ctx: Context, value: Any, append: Any) -> None:
    outcome = outcome_of_return(anything, ctx, ctx.result(value, append=append), ctx.port.bounds, strict=True)
    assert isinstance(outcome, Aborted)
    assert outcome.error.code == "bad_result"
    assert f"append={append!r}) takes a finite int or float" in outcome.error.message
    assert "give a function as append= to fold other values" in outcome.error.message


def test_a_number_is_folded_as_a_plain_one() -> None:
    @job
    async def level() -> Level: ...

    ctx = Context(attempt_of(level))
    contribution = plan_of(ctx, ctx.result(Level.LOW, append="sum")).contribution
    assert contribution is not None
    assert contribution.value == b"1"


@pytest.mark.parametrize("value", [3, [("a", 1)], None])
def test_what_is_no_mapping(ctx: Context, value: Any) -> None:
    outcome = outcome_of_return(anything, ctx, ctx.result(value, append="merge"), ctx.port.bounds, strict=True)
    assert isinstance(outcome, Aborted)
    assert "takes a mapping" in outcome.error.message


def test_any_mapping_merges() -> None:
    @job
    async def counts() -> dict[str, int]: ...

    ctx = Context(attempt_of(counts))
    assert plan_of(ctx, ctx.result(OrderedDict(a=1), append="merge")).contribution is not None


def test_a_function_is_left_to_the_engine(ctx: Context) -> None:
    def fold(existing: str | None, value: int) -> str:
        return f"{existing} {value}"

    result = ctx.result(3, append=fold)
    assert contributed(ctx, result) == Contribution(type="anything", value=b"3", reducer="custom")
    assert fold_of(result) is fold
    assert fold_of(3) is fold_of(ctx.result(3, append="sum")) is fold_of(ctx.result(3)) is None


def test_wrong_asks(ctx: Context) -> None:
    with pytest.raises(InvalidInput, match="append='product' must be 'list', 'count'"):
        ctx.result(3, append="product")  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="append=3 must be"):
        ctx.result(3, append=3)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="give one of them"):
        ctx.result(3, final=True, append="sum")  # type: ignore[call-overload]
