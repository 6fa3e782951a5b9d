"""The judges see what they are there to see: each is shown a violation and must name it."""

from __future__ import annotations

from msgspec import structs

from ropewalk.domain.failure import WORKER_LOST
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.outcome import Aborted, Completed, Outcome, Released
from ropewalk.domain.jobs.record import AttemptRecord, CompensatedJob, CompensationSpec, NewJob, new_record
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import decide
from ropewalk.ports.store.reading import StoredHistory
from tests.torture import checkers
from tests.torture.history import Happening, Kind


def test_a_good_life_has_no_fault() -> None:
    trails = {"a": lived(then=Completed(None))}
    happened = [seen("started"), seen("effect"), seen("accepted")]
    assert checkers.lost(["a"], trails) == []
    assert checkers.unexpected(["a"], trails, happened) == []
    assert checkers.accepted_twice(happened, trails) == []
    assert checkers.accepted_late(happened, trails) == []
    assert checkers.illegal(trails) == []
    assert checkers.leased_twice(happened, trails) == []
    assert checkers.completed_without_effect(happened, trails) == []
    assert checkers.over_budget(trails) == []
    assert checkers.uncompensated(trails) == []
    assert checkers.defects(happened) == []


def test_a_job_that_vanished_or_never_ended_is_lost() -> None:
    assert checkers.lost(["a", "b"], {"b": lived(then=None)}) == ["a", "b"]


def test_a_job_nobody_submitted_is_unexpected() -> None:
    assert checkers.unexpected(["b"], {"a": lived(then=Completed(None))}, []) == ["a"]
    assert checkers.unexpected(["b"], {}, [seen("started")]) == ["a"]


def test_two_completions_of_one_job_are_seen() -> None:
    assert checkers.accepted_twice([seen("accepted"), seen("accepted")], {}) == ["a"]


def test_a_completion_by_an_attempt_that_was_over_is_seen() -> None:
    trail = lived(then=Completed(None))
    trail.job.attempt = 2
    assert checkers.accepted_late([seen("accepted")], {"a": trail}) == ["a: attempt 1 was accepted, the job is at 2"]


def test_a_change_without_a_record_is_a_gap() -> None:
    trail = lived(then=Completed(None))
    trail.job.rev += 1
    assert checkers.illegal({"a": trail}) != []


def test_an_attempt_after_the_end_is_out_of_order() -> None:
    trail = lived(then=Aborted(WORKER_LOST))
    (last,) = trail.attempts
    late = structs.replace(last, fence=2, start_rev=4, rev=5)
    trail.job.rev = 5
    (said,) = checkers.illegal({"a": structs.replace(trail, attempts=[last, late])})
    assert "started out of order" in said


def test_a_fence_given_twice_is_seen() -> None:
    assert checkers.leased_twice([seen("started"), seen("started")], {}) == ["a fence 1 started 2×"]


def test_fences_that_do_not_rise_are_seen() -> None:
    trail = lived(then=Released())
    (first,) = trail.attempts
    again = structs.replace(first, start_rev=first.start_rev + 2, rev=first.rev + 2)
    assert checkers.leased_twice([], {"a": structs.replace(trail, attempts=[first, again])}) == ["a fences [1, 1]"]


def test_a_completion_nobody_worked_for_is_seen() -> None:
    other_fence = structs.replace(seen("effect"), fence=7)
    assert checkers.completed_without_effect([other_fence], {"a": lived(then=Completed(None))}) == ["a"]


def test_spending_more_than_the_budget_is_seen() -> None:
    trail = lived(then=None)
    trail.job.attempt = 4
    assert len(checkers.over_budget({"a": trail})) == 1


def test_a_missing_and_a_needless_compensation_are_seen() -> None:
    trail = lived(then=Completed(None))
    trail.job.on_failure = CompensationSpec(type="undo")
    undo = lived(then=Completed(None))
    undo.job.origin = CompensatedJob(id="a", run=1, type="work", input=b"{}", error=WORKER_LOST, started=True)
    assert checkers.uncompensated({"a": trail}) == []
    assert checkers.uncompensated({"a": trail, "b": undo}) == ["a: 1 compensations"]
    trail.job.status = Status.FAILED
    assert checkers.uncompensated({"a": trail}) == ["a: 0 compensations"]


def test_an_error_that_is_no_outage_is_a_defect() -> None:
    said = ("StoreUnavailable in claimer: away", "OutcomeUnknown in settler: who knows", "TimeoutError in heartbeat: ")
    troubles = [Happening(kind="trouble", pid=1, reason=reason) for reason in said]
    assert checkers.defects(troubles) == []
    defect = Happening(kind="trouble", pid=1, reason="AssertionError in claimer: asked for 1, got 2")
    assert checkers.defects([*troubles, defect]) == [defect.reason]


def test_refused_writes_are_summed_over_processes() -> None:
    told = [Happening(kind="refused", pid=pid, count=count) for pid, count in ((1, 1), (1, 3), (2, 2))]
    assert checkers.refused_writes(told) == 5


def seen(kind: Kind) -> Happening:
    return Happening(kind=kind, pid=1, job="a", fence=1, attempt=1)


def lived(*, then: Outcome | None) -> StoredHistory:
    """A job "a" that was queued, claimed once, and then ended its attempt so (None: still runs)."""
    job = new_record(NewJob(id="a", type="work", input=b"{}"), seq=1, now=1)
    transition.claim(job, owner="w", ticket=1, epoch=0, lease_us=1, now=2)
    attempts: list[AttemptRecord] = []
    if then is not None:
        effects = transition.settle(job, decide(job, then, BUILT_IN, 0.0), now=3)
        attempts = [effects.attempt] if effects.attempt is not None else []
    return StoredHistory(now=4, job=job, attempts=attempts, events=[])
