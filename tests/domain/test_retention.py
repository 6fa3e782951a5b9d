"""How long finished jobs are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ropewalk.domain.jobs.states import TERMINAL, Status
from ropewalk.domain.retention import Retention, is_over, keep_for
from ropewalk.domain.time import DAY, HOUR, SECOND
from ropewalk.errors import InvalidInput
from tests.domain.records import NOW

SPANS = {Status.COMPLETED: 1, Status.FAILED: 2, Status.DEAD_LETTER: 3, Status.CANCELLED: 4}
OWN = Retention(completed_us=1, failed_us=2, dead_letter_us=3, cancelled_us=4, types={"audit": None, "ping": HOUR})


@pytest.mark.parametrize("status", TERMINAL)
def test_each_state_has_its_span_unless_the_type_says_otherwise(status: Status) -> None:
    assert keep_for(OWN, status, "email") == SPANS[status]
    assert keep_for(OWN, status, "ping") == HOUR
    assert keep_for(OWN, status, "audit") is None


def test_defaults() -> None:
    days = {status: keep_for(Retention(), status, "email") for status in TERMINAL}
    assert days == {
        Status.COMPLETED: 7 * DAY,
        Status.CANCELLED: 7 * DAY,
        Status.FAILED: 30 * DAY,
        Status.DEAD_LETTER: 30 * DAY,
    }
    assert Retention().results_us is None


@pytest.mark.parametrize("status", [Status.WAITING, Status.RUNNING])
def test_a_live_job_has_none(status: Status) -> None:
    with pytest.raises(AssertionError, match="not finished"):
        keep_for(OWN, status, "email")


@pytest.mark.parametrize(("now", "over"), [(NOW + HOUR - 1, False), (NOW + HOUR, True), (NOW + HOUR + 1, True)])
def test_over_means_the_whole_span_has_passed(now: int, over: bool) -> None:
    assert is_over(OWN, Status.COMPLETED, "ping", finished_at=NOW, now=now) is over


def test_none_keeps_for_ever() -> None:
    assert not is_over(OWN, Status.COMPLETED, "audit", finished_at=0, now=10**18)


def test_people_write_seconds_and_timedeltas() -> None:
    assert Retention.of() == Retention()
    written = Retention.of(completed=60, failed=timedelta(days=1), dead_letter=None, results=0, types={"audit": None})
    assert written == Retention(
        completed_us=60 * SECOND, failed_us=DAY, dead_letter_us=None, results_us=0, types={"audit": None}
    )


@pytest.mark.parametrize("field", ["completed", "failed", "dead_letter", "cancelled", "results"])
def test_a_negative_span_names_its_field(field: str) -> None:
    wrong: dict[str, Any] = {field: -1}
    with pytest.raises(InvalidInput) as refused:
        Retention.of(**wrong)
    assert refused.value.field == field
    with pytest.raises(InvalidInput, match="audit"):
        Retention.of(types={"audit": -1})
