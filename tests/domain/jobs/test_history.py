"""What a life looks like when it is told."""

from __future__ import annotations

from ropewalk.domain.jobs.history import assemble
from ropewalk.domain.jobs.operations import RetryRequest, cancel, retry
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import expire, settle
from tests.domain.records import NOW, OOPS, a_job, asking, running, start


def test_a_plain_job_is_told_from_its_own_columns() -> None:
    job = running()
    settle(job, asking(job, Move.COMPLETE, result=b"3"), NOW + 9)
    history = assemble(job, [], [])
    assert [(entry.rev, entry.kind, entry.at, entry.attempt, entry.worker) for entry in history] == [
        (1, "queued", NOW, None, None),
        (2, "started", NOW, 1, "worker-a"),
        (3, "complete", NOW + 9, 1, "worker-a"),
    ]


def test_a_running_job_shows_its_start_and_its_worker() -> None:
    history = assemble(running(), [], [])
    assert [(entry.kind, entry.attempt, entry.worker) for entry in history] == [
        ("queued", None, None),
        ("started", 1, "worker-a"),
    ]


def test_failures_and_operators_are_told_in_order() -> None:
    attempts: list[AttemptRecord | None] = []
    events: list[EventRecord | None] = []
    job = running(max_attempts=2, deadline=NOW + 100)
    attempts.append(settle(job, asking(job, Move.RETRY, error=OOPS, delay_us=5), NOW + 1).attempt)
    events.append(expire(job, NOW + 100).event)
    events.append(retry(job, RetryRequest(), NOW + 101))
    start(job, now=NOW + 102)
    events.append(cancel(job, reason="enough", force=False, now=NOW + 103)[1])
    attempts.append(settle(job, asking(job, Move.RETRY, error=OOPS), NOW + 104).attempt)
    history = assemble(job, filter(None, attempts), filter(None, events))
    assert [(entry.rev, entry.kind, entry.reason) for entry in history] == [
        (1, "queued", None),
        (2, "started", None),
        (3, "retry", "oops"),
        (4, "expired", "deadline exceeded"),
        (5, "retried", None),
        (6, "started", None),
        (7, "cancel_requested", "enough"),
        (8, "cancel", "oops"),
    ]


def test_a_job_nobody_touched_was_only_queued() -> None:
    assert [entry.kind for entry in assemble(a_job(), [], [])] == ["queued"]
