"""The judges of graphs see what they are there to see: each is shown a violation and must name it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
from msgspec import structs

from ropewalk.domain.failure import WORKER_LOST
from ropewalk.domain.jobs.outcome import Aborted, Completed
from ropewalk.domain.jobs.record import CompensatedJob
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.workflow.group_value import GroupValue
from ropewalk.ports.store.reading import StoredHistory
from ropewalk.ports.store.workflows import GroupRecord
from tests.torture import flows, plan
from tests.torture import graph_checkers as judges
from tests.torture.history import Happening, Kind, Recorder, Tail
from tests.torture.plan import Parent, Plan
from tests.torture.test_checkers import lived

ROOT, CHILD, AFTER = "root", "child", "after"


def test_a_good_life_has_no_fault() -> None:
    planned, trails, groups = family()
    happened = good_history()
    assert judges.unplanned(planned, trails, happened) == []
    assert judges.miscounted(planned, trails) == []
    assert judges.started_early(planned, trails, happened) == []
    assert judges.doomed_but_ran(planned, trails, happened) == []
    assert judges.not_closed_once(groups, trails, happened) == []
    assert judges.wrong_sums(planned, groups) == []


def test_a_job_nobody_asked_for_is_unplanned() -> None:
    planned, trails, _ = family()
    trails["stray"] = completed("stray")
    assert judges.unplanned(planned, trails, [seen("started", "ghost")]) == ["ghost", "stray"]


def test_a_compensation_is_planned() -> None:
    planned, trails, _ = family()
    trails["undo"] = completed("undo")
    trails["undo"].job.origin = CompensatedJob(id=AFTER, run=1, type="t", input=b"", error=WORKER_LOST, started=True)
    assert judges.unplanned(planned, trails, []) == []


def test_a_missing_and_a_doubled_child_are_seen() -> None:
    planned, trails, _ = family()
    twin = completed("twin", parent=ROOT)
    assert judges.miscounted(planned, trails | {"twin": twin}) == ["root: 2 of 1"]
    del trails[CHILD]
    assert judges.miscounted(planned, trails) == ["root: 0 of 1"]


def test_a_dependant_of_a_group_that_did_not_wait_for_a_child_is_seen() -> None:
    planned, trails, _ = family()
    happened = [*worked(ROOT), seen("started", AFTER), *worked(CHILD)]
    assert judges.started_early(planned, trails, happened) == ["after started before child ended"]


def test_an_effect_that_did_not_count_is_not_waited_for() -> None:
    planned, trails, _ = family()
    stale = [structs.replace(each, fence=0) for each in worked(CHILD)]
    assert judges.started_early(planned, trails, [*worked(ROOT), *stale, *worked(CHILD), seen("started", AFTER)]) == []
    assert judges.started_early(planned, trails, [*worked(ROOT), *stale, seen("started", AFTER)]) != []


def test_what_wraps_up_waits_for_the_leaves() -> None:
    trails = {CHILD: completed(CHILD, parent=ROOT), "last": completed("last", parent=ROOT)}
    trails[CHILD].job.type, trails["last"].job.type = flows.leaf.name, flows.wrap_up.name
    assert judges.started_early(Plan(), trails, [*worked(CHILD), *worked("last")]) == []
    assert judges.started_early(Plan(), trails, [*worked("last"), *worked(CHILD)]) == [
        "last started before child ended"
    ]


def test_a_doomed_job_that_started_or_succeeded_is_seen() -> None:
    failed = lived(then=Aborted(WORKER_LOST))
    planned = Plan(doomed={"a"})
    assert failed.job.status is not Status.COMPLETED
    failed.job.status = Status.FAILED
    assert judges.doomed_but_ran(planned, {"a": failed}, []) == []
    assert judges.doomed_but_ran(planned, {"a": failed}, [seen("started", "a")]) == ["a"]
    assert judges.doomed_but_ran(planned, {"a": completed("a")}, []) == ["a"]


def test_a_group_that_did_not_close_once_is_seen() -> None:
    _, trails, groups = family()
    good = groups[ROOT]

    def said(**changes: object) -> list[str]:
        return judges.not_closed_once({ROOT: structs.replace(good, **changes)}, trails, [])

    assert said() == []
    assert said(closed_at=None) == ["root: not closed"]
    assert said(generation=2) == ["root: generation 2"]
    assert len(said(open=1)) == len(said(completed=3)) == len(said(failed=1)) == 1
    assert judges.not_closed_once({}, trails, []) == ["root: no group"]


def test_a_group_told_as_closed_twice_or_early_is_seen() -> None:
    _, trails, groups = family()
    closed = seen("closed", ROOT)
    assert judges.not_closed_once(groups, trails, [*good_history(), closed]) == ["root: told as closed 2×"]
    early = [*worked(ROOT), closed, *worked(CHILD)]
    assert judges.not_closed_once(groups, trails, early) == ["root: told as closed before child ended"]


def test_a_contribution_lost_or_doubled_is_seen() -> None:
    planned, _, groups = family()
    wrong = structs.replace(groups[ROOT], value=GroupValue(reducer="sum", value=b"14"))
    assert judges.wrong_sums(planned, {ROOT: wrong}) == ["root: 14, not 7"]
    assert judges.wrong_sums(planned, {}) == ["root: None, not 7"]


def test_what_is_drawn_is_what_was_asked_for() -> None:
    drawn = plan.draw(Random(1), 2_000)
    assert 2_000 <= drawn.size < 2_100
    assert len(set(drawn.ids)) == len(drawn.jobs)
    assert drawn.needs.keys() | drawn.doomed | drawn.children.keys() <= set(drawn.ids)
    assert min(len(drawn.needs), len(drawn.doomed), len(drawn.children), len(drawn.sums)) > 10


def test_a_line_under_way_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "history"
    tail = Tail(path)
    assert tail.news() == []
    Recorder(path).put("accepted", "a")
    half = msgspec.json.encode(seen("accepted", "b")) + b"\n"
    with path.open("ab", buffering=0) as file:
        file.write(half[:10])
        assert [each.job for each in tail.news()] == ["a"]
        file.write(half[10:])
    assert [each.job for each in tail.news()] == ["b"]
    assert (tail.news(), tail.accepted) == ([], 2)


def family() -> tuple[Plan, dict[str, StoredHistory], dict[str, GroupRecord]]:
    """A root with one child, and a job that waits for their group."""
    submitted = [flows.join().using(id=job_id) for job_id in (ROOT, AFTER)]
    planned = Plan(jobs=submitted, needs={AFTER: [Parent(ROOT, whole_group=True)]}, children={ROOT: 1}, sums={ROOT: 7})
    trails = {ROOT: completed(ROOT), CHILD: completed(CHILD, parent=ROOT), AFTER: completed(AFTER)}
    group = GroupRecord(
        id=ROOT,
        generation=1,
        open=0,
        completed=2,
        failed=0,
        cancelled=0,
        closed_at=9,
        cancelled_by=None,
        value=GroupValue(reducer="sum", value=b"7"),
    )
    return planned, trails, {ROOT: group}


def good_history() -> list[Happening]:
    return [*worked(ROOT), *worked(CHILD), seen("closed", ROOT), *worked(AFTER)]


def worked(job_id: str) -> list[Happening]:
    return [seen("started", job_id), seen("effect", job_id)]


def seen(kind: Kind, job_id: str) -> Happening:
    return Happening(kind=kind, pid=1, job=job_id, fence=1, attempt=1)


def completed(job_id: str, *, parent: str | None = None) -> StoredHistory:
    trail = lived(then=Completed(None))
    trail.job.id, trail.job.parent_id, trail.job.group_id = job_id, parent, parent
    return trail
