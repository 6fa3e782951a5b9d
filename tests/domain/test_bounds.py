"""Both sides of every bound; an error names the field, the value and the bound."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ropewalk.domain.bounds import DEFAULT_BOUNDS, Bounds, check
from ropewalk.domain.jobs.record import IdempotencyKey
from ropewalk.errors import InvalidInput, LimitExceeded
from tests.domain.records import a_new_job

NAMES = [
    "id",
    "type",
    "queue",
    "tenant",
    "idempotency_key",
    "correlation_id",
    "workflow_id",
    "workflow_type",
    "spawn_key",
]


def named(field: str, value: str) -> dict[str, object]:
    return {"key": IdempotencyKey(key=value)} if field == "idempotency_key" else {field: value}


def refusal(options: dict[str, Any], bounds: Bounds = DEFAULT_BOUNDS) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        check(a_new_job(**options), bounds)
    return refused.value


def test_the_documented_bounds() -> None:
    assert structs.asdict(DEFAULT_BOUNDS) == {
        "payload_bytes_max": 1_048_576,
        "result_bytes_max": 1_048_576,
        "checkpoint_bytes_max": 1_048_576,
        "tags_max": 32,
        "tag_chars_max": 256,
        "name_chars_max": 256,
        "batch_jobs_max": 10_000,
        "attempts_max": 100,
        "priority_max": 1000,
        "dependencies_max": 1000,
        "dependency_depth_max": 100,
        "cohort_edges_max": 100_000,
        "children_max": 10_000,
        "steps_max": 1000,
    }


@pytest.mark.parametrize(
    ("field", "good", "bad", "told"),
    [
        ("input", [b"", b"x" * 1024 * 1024], [b"x" * (1024 * 1024 + 1)], "1,048,577 bytes"),
        ("max_attempts", [None, 1, 100], [0, -1, 101], "between 1 and 100"),
        ("max_crashes", [1, 10_000], [0, -1], "at least 1"),
        ("priority", [-1000, 0, 1000], [-1001, 1001], "-1000...1000"),
        ("tags", [{}, {str(n): "" for n in range(32)}], [{str(n): "" for n in range(33)}], "33 tags"),
        ("tags", [{"n" * 256: "v" * 256}], [{"n": "v" * 257}, {"n" * 257: "v"}], "tag_chars_max=256"),
    ],
)
def test_both_sides_of_every_bound(field: str, good: list[Any], bad: list[Any], told: str) -> None:
    for value in good:
        check(a_new_job(**{field: value}))
    for value in bad:
        refused = refusal({field: value})
        assert isinstance(refused, LimitExceeded)
        assert refused.field == field
        assert told in str(refused)


@pytest.mark.parametrize("field", NAMES)
def test_names_have_one_to_256_characters(field: str) -> None:
    for value in ("x", "x" * 256, "é" * 256, "a b/c:d", "\ud7ff\ue000"):
        check(a_new_job(**named(field, value)))
    too_long = refusal(named(field, "x" * 257))
    assert isinstance(too_long, LimitExceeded)
    assert too_long.field == field
    assert "257 characters" in str(too_long)
    empty = refusal(named(field, ""))
    assert empty.field == field
    assert f"{field} is empty" in str(empty)


@pytest.mark.parametrize("field", NAMES)
def test_names_have_at_most_640_bytes(field: str) -> None:
    """Four of them together are to fit one entry of an index, on every store."""
    for value in ("x" * 256, "\u0436" * 256, "\u4e00" * 213, "\U0001f600" * 160):
        check(a_new_job(**named(field, value)))
    for value, size in (("\u4e00" * 214, 642), ("\U0001f600" * 161, 644)):
        too_long = refusal(named(field, value))
        assert isinstance(too_long, LimitExceeded)
        assert too_long.field == field
        assert f"{field} has {size} bytes in UTF-8, over the 640 that a name may have" in str(too_long)


def test_more_characters_than_bytes_cannot_be_allowed() -> None:
    with pytest.raises(InvalidInput, match="name_chars_max=641 must be between 1 and 640"):
        Bounds(name_chars_max=641)


UNSTORABLE = [("a\x00b", "NUL"), ("a\ud800b", "surrogate"), ("a\udfffb", "surrogate")]


@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize(("text", "told"), UNSTORABLE, ids=["nul", "high surrogate", "low surrogate"])
def test_names_no_store_can_keep_are_refused(field: str, text: str, told: str) -> None:
    refused = refusal(named(field, text))
    assert refused.field == field
    assert told in str(refused)


@pytest.mark.parametrize(("text", "told"), UNSTORABLE, ids=["nul", "high surrogate", "low surrogate"])
def test_so_are_such_tags(text: str, told: str) -> None:
    for tags in ({text: "value"}, {"name": text}):
        refused = refusal({"tags": tags})
        assert refused.field == "tags"
        assert told in str(refused)


@pytest.mark.parametrize("tags", [{"size": 5}, {5: "size"}, {"size": None}])
def test_tags_are_text(tags: Any) -> None:
    refused = refusal({"tags": tags})
    assert refused.field == "tags"
    assert "strings" in str(refused)


@pytest.mark.parametrize(
    ("bounds", "options", "field"),
    [
        (Bounds(payload_bytes_max=2), {"input": b"123"}, "input"),
        (Bounds(attempts_max=5), {"max_attempts": 6}, "max_attempts"),
        (Bounds(priority_max=5), {"priority": -6}, "priority"),
        (Bounds(name_chars_max=7), {"queue": "eight888"}, "queue"),
        (Bounds(tags_max=1), {"tags": {"a": "", "b": ""}}, "tags"),
        (Bounds(tag_chars_max=3), {"tags": {"a": "four"}}, "tags"),
    ],
)
def test_every_bound_can_be_moved(bounds: Bounds, options: dict[str, Any], field: str) -> None:
    check(a_new_job(**options))
    assert refusal({"input": b"", "type": "t", **options}, bounds).field == field
