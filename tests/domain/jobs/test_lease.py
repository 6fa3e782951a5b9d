"""Whose lease it is, why no longer, and what its holder may write without making history."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.lease import LossReason, loss_reason, note, renew
from ropewalk.domain.jobs.record import Progress
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND
from tests.domain.records import NOW, in_status, running


@pytest.mark.parametrize(
    ("status", "fence", "owner", "reason"),
    [
        (Status.RUNNING, 1, "worker-a", None),
        (Status.RUNNING, 0, "worker-a", LossReason.TAKEN_BY_ANOTHER_WORKER),
        (Status.RUNNING, 2, "worker-a", LossReason.TAKEN_BY_ANOTHER_WORKER),
        (Status.RUNNING, 1, "worker-b", LossReason.TAKEN_BY_ANOTHER_WORKER),
        (Status.WAITING, 0, "worker-a", LossReason.TAKEN_BY_ANOTHER_WORKER),
        (Status.CANCELLED, 1, "worker-a", LossReason.CANCELLED),
        (Status.COMPLETED, 1, "worker-a", LossReason.ALREADY_COMPLETED),
        (Status.FAILED, 1, "worker-a", LossReason.ALREADY_COMPLETED),
        (Status.DEAD_LETTER, 1, "worker-a", LossReason.ALREADY_COMPLETED),
    ],
)
def test_why_somebody_no_longer_holds_a_job(status: Status, fence: int, owner: str, reason: LossReason | None) -> None:
    assert loss_reason(in_status(status), fence, owner) is reason


def test_a_job_that_is_gone_is_held_by_nobody() -> None:
    assert loss_reason(None, 1, "worker-a") is LossReason.NOT_FOUND


def test_a_renewal_moves_the_expiry_and_nothing_else() -> None:
    job, untouched = running(), running()
    renew(job, lease_us=60 * SECOND, now=NOW + SECOND)
    untouched.lease_expires_at = NOW + 61 * SECOND
    assert job == untouched


def test_a_note_keeps_what_it_does_not_name() -> None:
    job, untouched = running(), running()
    note(job, checkpoint=b"half", progress=None, now=NOW)
    note(job, checkpoint=None, progress=Progress(50.0, "half way", 0), now=NOW + 5)
    untouched.checkpoint, untouched.progress = b"half", Progress(50.0, "half way", NOW + 5)
    assert job == untouched
