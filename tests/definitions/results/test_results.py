"""D3, D4: results by the return annotation, Results as only a context makes them, schemas of both ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.results import Result, Said, result_of
from ropewalk.errors import InvalidInput


@dataclass
class Report:
    lines: list[int]
    at: datetime


class Level(IntEnum):
    LOW = 1


@job
async def report(parts: int) -> Report: ...


@job
async def nothing(parts: int) -> None: ...


@job
async def maybe(parts: int) -> int | None: ...


@job
async def own_and_group(ctx: Context) -> Result[int, str]: ...


@job
async def own_or_none(ctx: Context) -> Result[int, str] | None: ...


@job
async def either(ctx: Context) -> Result[int, str] | Result[str, str]: ...


@job
async def bare(ctx: Context) -> Result: ...  # type: ignore[type-arg]


@job
async def undeclared(parts: int): ...  # type: ignore[no-untyped-def]


@job
async def anything(parts: int) -> object: ...


REPORT = Report([1], datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("job_type", "value"),
    [
        (report, REPORT),
        (nothing, None),
        (maybe, None),
        (maybe, 3),
        (own_and_group, 3),
        (own_or_none, 3),
        (own_or_none, None),
        (either, "x"),
        (either, 1),
        (bare, {1}),
        (undeclared, {"a": (1, b"x")}),
        (undeclared, None),
    ],
)
def test_round_trip(job_type: JobType[..., Any, Any], value: Any) -> None:
    data = job_type.encode_result(value)
    assert (data is None) is (value is None)
    assert job_type.decode_result(data) == value


@pytest.mark.parametrize(
    ("job_type", "value", "told"),
    [
        (report, None, "report: the result does not fit: expected `object`, got `null`"),
        (report, Report(["x"], REPORT.at), "expected `int`, got `str` at $.lines[0]"),  # type: ignore[list-item]
        (nothing, 3, "nothing: the result does not fit: expected `null`, got `int`"),
        (maybe, "3", "expected `int | null`, got `str`"),
        (own_and_group, "3", "expected `int`, got `str`"),
        (own_and_group, None, "expected `int`, got `null`"),
        (undeclared, Level.LOW, "cannot be restored exactly"),
        (undeclared, [REPORT], "; annotate the return type"),
        (anything, [REPORT], "; annotate the return type"),
    ],
)
def test_results_that_do_not_fit(job_type: JobType[..., Any, Any], value: Any, told: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        job_type.encode_result(value)
    assert told in str(refusal.value)
    assert refusal.value.field == "result"


def test_a_stored_result_that_no_longer_fits() -> None:
    with pytest.raises(InvalidInput, match=r"report: the stored result does not fit: expected `array`.* at \$\.lines"):
        report.decode_result(b'{"lines":1,"at":"2026-01-01T00:00:00Z"}')


# ── Results ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_cannot_be_forged() -> None:
    with pytest.raises(TypeError, match=r"made by ctx\.result"):
        Result(Said(value=3), [])
    made: list[Result[Any, Any]] = []
    result = result_of(Said(value=3), made)
    assert (result.value, made, repr(result)) == (3, [result], "Result(<int>)")


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_schemas() -> None:
    @job(name="pack")
    async def pack(report: Report, level: Level, *, extra: object = None, copies: int = 2) -> Report | None: ...

    schema = pack.input_schema()
    assert schema["$ref"] == "#/$defs/pack_input"
    assert schema["$defs"]["pack_input"] == {
        "title": "pack_input",
        "type": "object",
        "properties": {
            "report": {"$ref": "#/$defs/Report"},
            "level": {"$ref": "#/$defs/Level"},
            "extra": {"description": "any value", "default": None},
            "copies": {"type": "integer", "default": 2},
        },
        "required": ["report", "level"],
        "additionalProperties": False,
    }
    assert schema["$defs"]["Report"]["properties"]["lines"] == {"type": "array", "items": {"type": "integer"}}
    result = pack.result_schema()
    assert result["anyOf"] == [{"$ref": "#/$defs/Report"}, {"type": "null"}]
    assert set(result["$defs"]) == {"Report"}


def test_schemas_of_the_simplest() -> None:
    assert maybe.result_schema() == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert undeclared.result_schema() == {}
    assert nothing.result_schema() == {"type": "null"}
