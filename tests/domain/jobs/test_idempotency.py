"""When a submission is a repetition."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.idempotency import KeyMatch, KeyRecord, input_hash, judge_id, judge_key
from ropewalk.domain.jobs.record import IdempotencyKey, KeyScope
from ropewalk.domain.time import HOUR
from tests.domain.records import NOW, a_job, a_new_job

SAME, OTHER = input_hash(b"same"), input_hash(b"other")
OPENED = NOW - HOUR


@pytest.mark.parametrize(
    ("closed_at", "scope", "window_us", "hit"),
    [
        (None, "open", 0, True),
        (None, "any", 0, True),
        (None, "any", HOUR + 1, True),
        (NOW - 1, "open", HOUR + 1, False),
        (NOW - 1, "any", HOUR + 1, True),
        (NOW - 1, "any", HOUR, False),
        (NOW - 1, "any", HOUR - 1, False),
    ],
)
def test_the_new_calls_scope_decides(closed_at: int | None, scope: KeyScope, window_us: int, hit: bool) -> None:
    asked = IdempotencyKey(key="k", scope=scope, window_us=window_us)
    matches = [judge_key(held(closed_at), asked, hashed, NOW) for hashed in (SAME, OTHER)]
    assert matches == ([KeyMatch.DUPLICATE, KeyMatch.CONFLICT] if hit else [KeyMatch.FREE, KeyMatch.FREE])


def test_a_key_nobody_holds_is_free() -> None:
    assert judge_key(None, IdempotencyKey(key="k"), SAME, NOW) is KeyMatch.FREE


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({}, KeyMatch.DUPLICATE),
        ({"priority": 9, "queue": "slow"}, KeyMatch.DUPLICATE),
        ({"input": b"{}"}, KeyMatch.CONFLICT),
        ({"type": "fax"}, KeyMatch.CONFLICT),
    ],
)
def test_the_same_id_again(changes: dict[str, object], match: KeyMatch) -> None:
    assert judge_id(a_job(), a_new_job(**changes)) is match


def held(closed_at: int | None) -> KeyRecord:
    return KeyRecord(
        tenant="t",
        type="email",
        key="k",
        job_id="job-1",
        run=1,
        input_hash=SAME,
        opened_at=OPENED,
        closed_at=closed_at,
    )
