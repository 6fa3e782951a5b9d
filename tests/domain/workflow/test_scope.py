"""What is open under a job: the arithmetic of one counter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.record import CancelRequest, CompensatedJob
from ropewalk.domain.jobs.states import TERMINAL, Status
from ropewalk.domain.workflow.dependency import Ending
from ropewalk.domain.workflow.scope import (
    Scope,
    ScopeChange,
    cancel,
    cancels,
    change,
    join,
    opened,
    reopen,
    uncount,
)
from tests.domain.records import NOW, OOPS, a_job

LATER = NOW + 5
ORIGIN = CompensatedJob(id="job-1", run=1, type="t", input=b"{}", error=OOPS, started=True)


def a_scope(**fields: object) -> Scope:
    scope = opened(a_job(**fields), root=None, above=None)
    join(scope, 2)
    return scope


def left(*, ok: bool = True, times: int = 1) -> ScopeChange:
    changed = ScopeChange(scope=7)
    for _ in range(times):
        changed.leave(ok=ok)
    return changed


def test_a_roots_scope_is_its_group() -> None:
    scope = opened(a_job(report_orphan=True), root=None, above=None)
    assert (scope.id, scope.root, scope.parent, scope.owner_id, scope.group_id) == (7, 7, None, "job-1", "job-1")
    assert (scope.open, scope.members, scope.generation, scope.report_orphan) == (1, 0, 1, True)


def test_a_scope_inside_keeps_the_groups_root_and_its_cancellation() -> None:
    root = a_scope()
    root.cancel = CancelRequest("enough", force=False, at=NOW)
    owner = a_job(id="job-2", group_id="job-1", report_orphan=True)
    owner.seq, owner.scope_id = 9, root.id
    scope = opened(owner, root=root, above=root)
    assert (scope.id, scope.root, scope.parent, scope.group_id) == (9, 7, 7, "job-1")
    assert scope.cancel == root.cancel
    assert not scope.report_orphan, "only a whole group is an orphan"


def test_what_a_compensation_queues_is_not_cancelled_by_an_earlier_mark() -> None:
    root = a_scope()
    cancel(root, CancelRequest("enough", force=False, at=NOW))
    undo = a_job(id="undo", group_id="job-1", origin=ORIGIN)
    undo.seq, undo.scope_id = 9, root.id
    assert not cancels(root, undo)
    assert cancels(root, a_job(id="job-2"))
    assert opened(undo, root=root, above=root).cancel is None


def test_a_closed_scope_is_not_marked_and_an_open_mark_ends_when_it_opens_again() -> None:
    scope = a_scope()
    cancel(scope, CancelRequest("enough", force=False, at=NOW))
    assert scope.cancel is not None
    change(scope, left(times=3), LATER)
    reopen(scope, was_broken=False)
    assert scope.cancel is None
    change(scope, left(), LATER)
    cancel(scope, CancelRequest("too late", force=False, at=LATER))
    assert scope.cancel is None


def test_it_closes_with_the_last_one_and_only_then() -> None:
    scope = a_scope()
    assert not change(scope, left(), LATER)
    assert not change(scope, left(), LATER)
    assert (scope.open, scope.closed_at) == (1, None)
    assert change(scope, left(), LATER)
    assert (scope.open, scope.closed_at, scope.ending) == (0, LATER, Ending.COMPLETED)


def test_several_at_once_close_it_too() -> None:
    assert change(a_scope(), left(times=3), LATER)


def test_counting_alone_never_closes() -> None:
    scope = a_scope()
    change(scope, left(times=3), NOW)
    counted = ScopeChange(scope=7)
    counted.count(Status.COMPLETED)
    assert not change(scope, counted, LATER)
    assert (scope.completed, scope.closed_at) == (1, NOW)


def test_more_than_were_in_it_cannot_leave() -> None:
    with pytest.raises(AssertionError, match="more left scope 7 than were in it"):
        change(a_scope(), left(times=4), LATER)


def test_nothing_joins_a_closed_scope() -> None:
    scope = a_scope()
    change(scope, left(times=3), LATER)
    with pytest.raises(AssertionError, match="closed"):
        join(scope, 1)


def test_one_that_did_not_succeed_breaks_the_tree() -> None:
    scope = a_scope()
    change(scope, left(ok=False), LATER)
    change(scope, left(times=2), LATER)
    assert (scope.broken, scope.ending) == (1, Ending.FAILED)


@pytest.mark.parametrize("status", Status)
def test_members_are_told_apart_by_how_they_ended(status: Status) -> None:
    changed, scope = ScopeChange(scope=7), a_scope()
    if status not in TERMINAL:
        with pytest.raises(AssertionError, match="is no ending"):
            changed.count(status)
        with pytest.raises(AssertionError, match="is no ending"):
            uncount(scope, status)
        return
    changed.count(status)
    change(scope, changed, LATER)
    name = {Status.DEAD_LETTER: "failed"}.get(status, status.value)
    counts = {each: getattr(scope, each) for each in ("completed", "failed", "cancelled")}
    assert counts == {"completed": 0, "failed": 0, "cancelled": 0} | {name: 1}
    uncount(scope, status)
    assert (scope.completed, scope.failed, scope.cancelled) == (0, 0, 0)


def test_it_opens_again_as_a_new_generation_and_closes_again() -> None:
    scope = a_scope()
    change(scope, left(times=2), NOW)
    change(scope, left(ok=False), NOW)
    assert reopen(scope, was_broken=True)
    assert (scope.open, scope.broken, scope.closed_at, scope.generation) == (1, 0, None, 2)
    assert change(scope, left(), LATER)
    assert (scope.ending, scope.closed_at) == (Ending.COMPLETED, LATER)


def test_one_that_was_open_stays_of_its_generation() -> None:
    scope = a_scope()
    change(scope, left(), NOW)
    assert not reopen(scope, was_broken=False)
    assert (scope.open, scope.generation) == (3, 1)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_a_sum_of_changes_is_the_same_as_one_after_the_other(ends: list[bool], data: st.DataObject) -> None:
    singly, summed = (opened(a_job(), root=None, above=None) for _ in range(2))
    for scope in (singly, summed):
        join(scope, len(ends) - 1)
    total = ScopeChange(scope=7)
    closed: list[bool] = []
    for ok in ends:
        one = left(ok=ok)
        one.count(data.draw(st.sampled_from(sorted(TERMINAL))))
        closed.append(change(singly, one, LATER))
        total.add(one)
    assert closed == [False] * (len(ends) - 1) + [True]
    assert change(summed, total, LATER)
    assert summed == singly
