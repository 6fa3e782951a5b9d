"""What is done for many at once answers like the long way, and stays a matter of few statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ropewalk.backends.sql import completion
from ropewalk.backends.sql import submission as submitting
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.records import load
from ropewalk.backends.sql.steps import READ_AT_ONCE_MAX
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.sqlite.opening import open_writer
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.domain.workflow.completion import CompletionPlan, StepRecord
from ropewalk.domain.workflow.dependency import NewGate, ParentKind, ParentRef
from ropewalk.domain.workflow.group_value import Contribution, Reducer
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.submission import Accepted, SkipQueue, Submission
from ropewalk.testing.contract.builders import claim_request, settlement
from tests.backends.sqlite.conftest import plain, submit
from tests.backends.sqlite.test_plans import _indexes

MANY = 10_000
STATEMENTS_MAX = 250
"""for MANY jobs: a batch of rows is one statement"""


async def running(store: SqliteStore, *ids: str, ticket: int = 1) -> list[JobRecord]:
    jobs = (await store.claim(claim_request(limit=len(ids), types=["t"], first_ticket=ticket))).jobs
    assert {job.id for job in jobs} == {*ids}
    return jobs


async def spawn(store: SqliteStore, parent: JobRecord, *children: NewJob) -> list[Accepted]:
    assert parent.owner is not None
    holder = Holder(parent.seq, parent.fence, parent.owner)
    [answer] = await store.submit([Submission(jobs=children, under=holder)])
    assert isinstance(answer, list), answer
    return answer


def child(name: str, **fields: Any) -> NewJob:
    return plain(name, parent_id="root", spawn_key=name, **fields)


def adding(value: bytes, reducer: Reducer = "last", **fields: Any) -> CompletionPlan:
    return CompletionPlan(contribution=Contribution(type="t", value=value, reducer=reducer, **fields))


async def group_of(store: SqliteStore, names: Sequence[str]) -> list[JobRecord]:
    """Children of a running root, all running."""
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    await spawn(store, root, *(child(name) for name in names))
    return await running(store, *names, ticket=2)


async def test_children_spawned_again_are_found_one_by_one(store: SqliteStore) -> None:
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    first = await spawn(store, root, child("a"), child("b"))
    again = await spawn(store, root, child("a2", input=b"2"), child("b"), child("c"))
    assert [(each.id, each.duplicate, each.group_id) for each in [*first, *again]] == [
        ("a", False, "root"),
        ("b", False, "root"),
        ("a2", False, "root"),
        ("b", True, "root"),
        ("c", False, "root"),
    ]
    assert (await store.groups("default", ["root"]))["root"].open == 5


async def test_children_of_a_cancelled_group_are_born_cancelled(store: SqliteStore) -> None:
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    assert await store.cancel_group("default", "root", reason="no", force=False)
    born = await spawn(store, root, child("a"), child("b"))
    assert [each.state for each in born] == [State.CANCELLED, State.CANCELLED]


async def test_a_submission_sees_what_came_before_it_in_the_same_call(store: SqliteStore) -> None:
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    holder = Holder(root.seq, root.fence, "worker")
    gate = NewGate(parents=(ParentRef(ParentKind.JOB, "a"),), need=1, of="done")
    answers = await store.submit(
        [
            Submission(jobs=[plain("keyless"), plain("gated", gate=gate)], under=None),
            Submission(jobs=[child("a", priority=1), child("b")], under=holder),
            Submission(jobs=[child("b"), child("c")], under=holder),
            Submission(jobs=[plain("late", gate=gate)]),
            Submission(jobs=[plain("now")], skip_queue=SkipQueue("worker", 9, 1_000_000)),
        ]
    )
    refused, *accepted = answers
    assert not isinstance(refused, list), "nobody had submitted a yet"
    told = [(each.id, each.duplicate, each.state) for answer in accepted if isinstance(answer, list) for each in answer]
    assert told == [
        ("a", False, State.SCHEDULED),
        ("b", False, State.SCHEDULED),
        ("b", True, State.SCHEDULED),
        ("c", False, State.SCHEDULED),
        ("late", False, State.PENDING),
        ("now", False, State.RUNNING),
    ]
    assert (await store.get("default", ["keyless"])).jobs == {}


async def test_contributions_come_in_the_order_they_were_settled(store: SqliteStore) -> None:
    """The second one takes the long way: it owns a scope."""
    first, second, third = await group_of(store, ["a", "b", "c"])
    await spawn(store, second, plain("below", parent_id="b", spawn_key="below"))
    asked = [
        settlement(job, plan=adding(value))
        for job, value in ((first, b"1"), (second, b"2"), (third, b"3"), (third, b"4"))
    ]
    settled = (await store.settle("worker", asked)).settled
    assert [answer.lost is None for answer in settled] == [True, True, True, False]
    group = (await store.groups("default", ["root"]))["root"]
    assert (group.value.value, group.value.contributions) == (b"3", 3)
    assert (group.open, group.completed) == (2, 3)


async def test_of_two_settlements_of_one_lease_the_first_counts(store: SqliteStore) -> None:
    first, second = await group_of(store, ["a", "b"])
    asked = [settlement(first, result=b"1"), settlement(second), settlement(first, result=b"2")]
    settled = (await store.settle("worker", asked)).settled
    assert [answer.lost for answer in settled] == [None, None, LossReason.ALREADY_COMPLETED]
    assert (await store.get("default", ["a"])).jobs["a"].result == b"1"
    assert (await store.groups("default", ["root"]))["root"].completed == 2


async def test_an_outdated_fold_is_refused_beside_others(store: SqliteStore) -> None:
    first, second, third = await group_of(store, ["a", "b", "c"])
    asked = [
        settlement(first, plan=adding(b"1", "custom", expected_version=0)),
        settlement(second, plan=adding(b"2", "custom", expected_version=0)),
        settlement(third),
    ]
    settled = (await store.settle("worker", asked)).settled
    assert [answer.refused is None for answer in settled] == [True, False, True]
    group = (await store.groups("default", ["root"]))["root"]
    assert (group.value.value, group.completed) == (b"1", 2)


async def test_more_contributions_than_are_read_at_once(store: SqliteStore) -> None:
    count = 2 * READ_AT_ONCE_MAX + 1
    jobs = await group_of(store, [f"job-{number:04}" for number in range(count)])
    values = [b"%d\0" % number for number in range(count)]
    for half in (slice(0, 700), slice(700, count)):
        asked = [
            settlement(job, plan=adding(value, "list")) for job, value in zip(jobs[half], values[half], strict=True)
        ]
        await store.settle("worker", asked)
    assert [kept.value for kept in await store.contributions("default", "root")] == values


async def test_more_steps_than_are_read_at_once(store: SqliteStore) -> None:
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    steps = [
        StepRecord(position=number, name=f"step-{number}", kind="step", value=None if number % 7 else b"%d\0" % number)
        for number in range(READ_AT_ONCE_MAX + 1)
    ]
    for step in steps:
        assert await store.record_step(Holder(root.seq, root.fence, "worker"), step) is not None
    assert await store.steps(root.seq) == steps


async def test_a_child_costs_two_entries_more_than_a_plain_job(store: SqliteStore) -> None:
    await submit(store, plain("root"))
    [root] = await running(store, "root")
    await spawn(store, root, child("a"))
    await store._writer.ask(lambda tx: tx.run("DELETE FROM job WHERE id = 'root'"))
    held = await store._writer.ask(lambda tx: _indexes(tx, 1))
    assert held == {"job_by_id", "job_ready", "job_by_group", "job_by_parent"}


async def test_what_was_left_for_later_is_gone_on_with_in_small_steps(store: SqliteStore) -> None:
    waiting = [plain(f"waiting-{number}", gate=gate_on("a")) for number in range(1500)]
    await submit(store, plain("a"), *waiting)
    [job] = await running(store, "a")
    consequences = (await store.settle("worker", [settlement(job)])).consequences
    rounds = 0
    while consequences.more:
        consequences = await store.cascade(200)
        rounds += 1
    assert rounds in (3, 4)
    [queue] = await store.queues("default")
    assert queue.counts == {State.SCHEDULED: 1500}


def gate_on(*ids: str) -> NewGate:
    return NewGate(parents=tuple(ParentRef(ParentKind.JOB, each) for each in ids), need=len(ids), of="success")


def test_ten_thousand_children_are_few_statements(path: Path) -> None:
    counted = Counted(path)
    counted.submit(Submission(jobs=[plain("root"), plain("other")]))
    counted.lease()
    spawned = [child(f"spawned-{number}") for number in range(MANY)]
    uneven = [child(f"uneven-{number}", priority=number % 2) for number in range(MANY)]
    queued = tuple(plain(f"queued-{number}", gate=gate_on("queued-0") if number else None) for number in range(MANY))
    holder = Holder(1, 1, "worker")
    for jobs in (spawned, uneven):
        counted.submit(Submission(jobs=jobs, under=holder))
        assert counted.statements < STATEMENTS_MAX
    ends = [settlement(counted.job(2), plan=CompletionPlan(children=queued))]
    counted.do(lambda tx, lanes: completion.settle(tx, lanes, "worker", ends))
    assert counted.statements < 2 * STATEMENTS_MAX, "each has an edge, too"
    counted.close()


class Counted:
    """A file whose statements are counted, one transaction at a time."""

    def __init__(self, path: Path) -> None:
        self._db = open_writer(path, allow_weaker_durability=False).db
        self._lanes = LaneBook()
        self.statements = 0

    def do(self, work: Callable[[Tx, LaneBook], object]) -> None:
        self.statements = 0
        self._db.set_trace_callback(self._count)
        self._db.execute("BEGIN IMMEDIATE")
        work(Tx(self._db, 1_000_000), self._lanes)
        self._db.execute("COMMIT")
        self._db.set_trace_callback(None)

    def submit(self, submission: Submission) -> None:
        self.do(lambda tx, lanes: submitting.submit(tx, lanes, [submission]))

    def lease(self) -> None:
        self._db.execute("UPDATE job SET stage = 2, status = 'running', fence = 1, owner = 'worker', started_at = 1")

    def job(self, seq: int) -> JobRecord:
        [job] = load(Tx(self._db, 0), [seq])
        return job

    def close(self) -> None:
        self._db.close()

    def _count(self, _: str) -> None:
        self.statements += 1
