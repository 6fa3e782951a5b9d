"""R12: which of the jobs at hand starts next."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.definitions.policies import Age, Balanced, Priority, Unlimited
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.worker.policies import order as balanced
from ropewalk.worker.policies.order import Arrangement, Balance, ByAge, ByPriority, order_of
from tests.worker.policies.jobs import claimed, seqs


@st.composite
def at_hand(draw: st.DrawFn) -> list[JobRecord]:
    numbers = draw(st.lists(st.integers(1, 50), unique=True, max_size=25))
    return [
        claimed(
            number,
            age=draw(st.integers(0, 3)),
            type=draw(st.sampled_from("tu")),
            priority=draw(st.integers(-1, 1)),
            fairness=draw(st.sampled_from([None, "a", "b", "c"])),
        )
        for number in numbers
    ]


def test_the_highest_priority_then_the_oldest() -> None:
    jobs = [claimed(1, age=9), claimed(2, priority=5), claimed(3, priority=5, age=1), claimed(4, priority=-5, age=99)]
    assert seqs(ByPriority().arrange(jobs, [])) == [3, 2, 1, 4]


def test_the_oldest_whatever_its_priority() -> None:
    jobs = [claimed(1), claimed(2, priority=5, age=3), claimed(3, priority=-5, age=9), claimed(4)]
    assert seqs(ByAge().arrange(jobs, [])) == [3, 2, 1, 4]


def test_labels_take_turns_exactly() -> None:
    """However many one of them has, and however old and urgent they are."""
    flood = [claimed(number, age=99, priority=9, fairness="flood") for number in range(1, 5)]
    others = [claimed(10, fairness="a"), claimed(11, fairness="a"), claimed(12, fairness="b"), claimed(13)]
    assert seqs(Balance().arrange([*flood, *others], [])) == [1, 10, 12, 13, 2, 11, 3, 4]


def test_the_label_with_the_fewest_running_is_next() -> None:
    running = [claimed(90, fairness="a"), claimed(91, fairness="a"), claimed(92, fairness="b")]
    jobs = [
        claimed(1, fairness="a", age=9),
        claimed(2, fairness="b"),
        claimed(3, fairness="b"),
        claimed(4, fairness="c"),
    ]
    assert seqs(Balance().arrange(jobs, running)) == [4, 2, 1, 3]


def test_turns_go_on_from_one_choice_to_the_next() -> None:
    """One slot: nothing ever runs beside, so only remembered turns keep a flood from going first each time."""
    order, waiting, started = Balance(), [claimed(number, age=9, fairness="flood") for number in range(1, 6)], []
    waiting += [claimed(10, fairness="a"), claimed(11, fairness="a"), claimed(12, fairness="b")]
    while waiting:
        chosen = order.arrange(waiting, [])[0]
        order.left(chosen)
        waiting.remove(chosen)
        started.append(chosen.seq)
    assert started == [1, 10, 12, 2, 11, 3, 4, 5]


def test_only_so_many_labels_are_remembered() -> None:
    order = Balance()
    for number in range(balanced.LABELS_MAX + 1):
        order.left(claimed(number, fairness=str(number)))
    jobs = [claimed(1, fairness="1"), claimed(2, fairness="0")]
    assert seqs(order.arrange(jobs, [])) == [2, 1], "the first one counts as new again"


@given(at_hand(), at_hand())
def test_balanced_is_the_rule_applied_one_by_one(waiting: list[JobRecord], running: list[JobRecord]) -> None:
    expected: list[int] = []
    busy, last = Counter(job.fairness for job in running), defaultdict[str | None, int](int)
    left = list(waiting)
    while left:
        job = min(
            left, key=lambda job: (busy[job.fairness], last[job.fairness], -job.priority, job.created_at, job.seq)
        )
        left.remove(job)
        expected.append(job.seq)
        busy[job.fairness] += 1
        last[job.fairness] = len(expected)
    assert seqs(Balance().arrange(waiting, running)) == expected


@given(at_hand(), st.sampled_from([None, Priority(1), Age(1), Balanced(1)]))
def test_a_types_own_order_within_the_workers(
    waiting: list[JobRecord], whole: Priority | Age | Balanced | None
) -> None:
    plain = Arrangement(order_of(whole), {}).arrange(waiting, [])
    both = Arrangement(order_of(whole), {"u": ByAge()}).arrange(waiting, [])
    assert [job.type for job in both] == [job.type for job in plain], "when it is whose turn"
    assert seqs([job for job in both if job.type == "t"]) == seqs([job for job in plain if job.type == "t"])
    of_type = [job for job in both if job.type == "u"]
    assert of_type == sorted(of_type, key=lambda job: (job.created_at, job.seq))


def test_a_plain_number_keeps_the_stores_order() -> None:
    assert order_of(5) is order_of(Unlimited()) is order_of(None) is None
    assert not Arrangement(None, {})
    assert seqs(Arrangement(None, {"u": ByAge()}).arrange([claimed(2, age=9), claimed(1)], [])) == [1, 2]
