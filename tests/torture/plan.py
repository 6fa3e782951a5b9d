"""What is submitted, and what must come of it: drawn at random, a piece at a time. Knows nothing of stores."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct, field

from ropewalk import Group, Job
from tests.torture import flows, jobs

AnyJob: TypeAlias = Job[Any, Any]


class Parent(Struct, frozen=True):
    id: str
    whole_group: bool = False
    """the job and everything queued under it"""


class Plan(Struct, kw_only=True):
    jobs: list[AnyJob] = field(default_factory=list)
    needs: dict[str, list[Parent]] = field(default_factory=dict)
    """what each of these waits for"""
    doomed: set[str] = field(default_factory=set)
    """those that must end without ever starting"""
    children: dict[str, int] = field(default_factory=dict)
    """how many are queued under each of these; under any other nothing but its compensation"""
    sums: dict[str, int] = field(default_factory=dict)
    """the values of groups"""

    @property
    def ids(self) -> list[str]:
        return [job.id for job in self.jobs]

    @property
    def size(self) -> int:
        """Jobs, children included (compensations are not counted)."""
        return len(self.jobs) + sum(self.children.values())

    def add(self, other: Plan) -> Self:
        self.jobs += other.jobs
        self.needs |= other.needs
        self.doomed |= other.doomed
        self.children |= other.children
        self.sums |= other.sums
        return self


def draw(random: Random, size: int) -> Plan:
    """At least so many jobs."""
    plan = Plan()
    while plan.size < size:
        plan.add(random.choice(_PIECES)(random))
    return plan


def plain(random: Random) -> Plan:
    return Plan(jobs=[_some_job(random) for _ in range(10)])


def line(random: Random) -> Plan:
    """Each after the one before it."""
    plan = Plan(jobs=[_some_success(random)])
    for _ in range(random.randint(1, 4)):
        before = plan.jobs[-1]
        after = flows.join().using(depends_on=before)
        plan.jobs.append(after)
        plan.needs[after.id] = [Parent(before.id)]
    return plan


def fan_in(random: Random) -> Plan:
    """One after many; where one of the many fails it is doomed, and with it what comes after it."""
    parents: list[AnyJob] = [_some_success(random) for _ in range(random.randint(3, 8))]
    fails = random.random() < 0.3
    if fails:
        parents.append(jobs.book(order=random.randrange(1_000)))
    random.shuffle(parents)
    after = flows.join().using(depends_on=parents)
    last = flows.join().using(depends_on=after)
    anyway = flows.join().using(depends_on=parents, when="all_done")
    needs = [Parent(job.id) for job in parents]
    if fails:
        return Plan(jobs=[anyway, *parents, last, after], needs={anyway.id: needs}, doomed={after.id, last.id})
    return Plan(
        jobs=[anyway, *parents, last, after],
        needs={anyway.id: needs, after.id: needs, last.id: [Parent(after.id)]},
    )


def queued_group(random: Random) -> Plan:
    width = random.randint(2, 20)
    return _group(flows.fan(width=width), children=width + 1, value=_sum(width) + flows.WRAPPED_UP)


def spawned_group(random: Random) -> Plan:
    width = random.randint(2, 12)
    return _group(flows.brood(width=width), children=width, value=_sum(width))


_PIECES: Final[list[Callable[[Random], Plan]]] = [plain, plain, line, line, fan_in, queued_group, spawned_group]


def _group(root: AnyJob, *, children: int, value: int) -> Plan:
    """A job that others are queued under, and one that waits for all of them."""
    after = flows.join().using(depends_on=Group(root))
    return Plan(
        jobs=[root, after],
        needs={after.id: [Parent(root.id, whole_group=True)]},
        children={root.id: children},
        sums={root.id: value},
    )


def _sum(width: int) -> int:
    return sum(range(width))


def _some_job(random: Random) -> AnyJob:
    return jobs.book(order=random.randrange(1_000)) if random.random() < 0.05 else _some_success(random)


def _some_success(random: Random) -> AnyJob:
    roll = random.random()
    if roll < 0.6:
        return jobs.quick()
    return jobs.nap(seconds=random.uniform(0.005, 0.05)) if roll < 0.9 else jobs.stumble()
