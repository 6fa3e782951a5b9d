"""How many suspects run together."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.quarantine import UNBOUNDED, Quarantine, Suspects, must_start_at_once, together_max
from ropewalk.domain.jobs.record import JobRecord
from tests.domain.records import a_job, start

SLOTS = 8


def suspect(crashes: int = 1, *, attempt: int | None = None, **options: int | None) -> JobRecord:
    job = a_job(**options)
    job.crashes, job.attempt = crashes, crashes if attempt is None else attempt
    return job


@pytest.mark.parametrize(
    ("job", "together"),
    [
        (suspect(1), 8),
        (suspect(2), 1),
        (suspect(1, max_crashes=2), 1),
        (suspect(1, max_attempts=2), 1),
        (suspect(1, max_attempts=None), 8),
        (suspect(1, attempt=2), 1),
        (suspect(1, attempt=0), 8),
        (suspect(2, max_crashes=9, max_attempts=None), 4),
        (suspect(3, max_crashes=9, max_attempts=None), 2),
        (suspect(7, max_crashes=9, max_attempts=None), 1),
    ],
)
def test_how_many_run_beside_it(job: JobRecord, together: int) -> None:
    assert together_max(job, SLOTS) == together
    assert together_max(start(job), SLOTS) == together, "while it runs, too"


@pytest.mark.parametrize(
    ("job", "must"),
    [
        (a_job(), False),
        (a_job(max_attempts=1), True),
        (a_job(max_attempts=None), False),
        (suspect(0, attempt=1), False),
        (suspect(0, attempt=2), True),
        (suspect(0, attempt=99, max_attempts=None), False),
        (suspect(1, max_attempts=None), True),
    ],
)
def test_what_may_not_wait_in_a_buffer(job: JobRecord, must: bool) -> None:
    assert must_start_at_once(job) is must


def test_they_join_until_there_are_as_many_as_each_of_them_allows() -> None:
    quarantine = Quarantine(Suspects(number=1, together_max=8, slots=SLOTS))
    for job in (suspect(1), suspect(2, max_crashes=9, max_attempts=None), suspect(1)):
        assert quarantine.admits(job)
        quarantine.give(job)
    assert quarantine.closed


def test_one_that_may_not_join_is_not_overtaken() -> None:
    quarantine = Quarantine(Suspects(number=1, together_max=8, slots=SLOTS))
    assert not quarantine.admits(suspect(2))
    assert not quarantine.admits(suspect(1))


def test_nobody_joins_one_that_must_be_without_others() -> None:
    assert Quarantine(Suspects.of([start(suspect(2))], SLOTS)).closed


def test_what_a_worker_holds() -> None:
    assert Suspects.of([], SLOTS) == Suspects(0, UNBOUNDED, SLOTS)
    halved = suspect(2, max_crashes=9, max_attempts=None)
    assert Suspects.of([start(suspect(1)), start(halved)], SLOTS) == Suspects(2, 4, SLOTS)
