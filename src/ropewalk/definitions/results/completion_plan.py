"""Makes the jobs that are written when a job completes, children with their gates or a continuation, of a Result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from msgspec import structs

from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.definitions.dependency import CohortTrees, as_tuple
from ropewalk.definitions.job import Job
from ropewalk.definitions.option_precedence import merge_options
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.results.children import ChildIds, child_of
from ropewalk.definitions.results.results import Result, Said
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.workflow.dependency import ParentKind, ParentRef
from ropewalk.errors import InvalidInput, LimitExceeded

_GATE_OPTIONS: Final = frozenset({"depends_on", "when", "on_unsatisfied", "gate_timeout", "allow_missing"})

_NOTHING_BEFORE: Final = CohortTrees(())


def children_of(said: Said, port: AttemptPort, ids: ChildIds, bounds: Bounds) -> tuple[NewJob, ...]:
    """The jobs that this Result queues.

    Raises InvalidInput for a job that cannot be queued, and LimitExceeded for too many of them.
    """
    builder = _ChildrenBuilder(port, ids, bounds)
    builder.queue(said, _NOTHING_BEFORE, {})
    return tuple(ids.with_dependencies(each) for each in builder.children)


def continuation_of(said: Said, port: AttemptPort) -> NewJob | None:
    """The job that continues the chain, if the Result has one."""
    return None if said.continuation is None else child_of(port.job, port.prepare(said.continuation))


class _ChildrenBuilder:
    """Collects the children of one attempt from the cohorts of a Result and of the Results nested in it."""

    def __init__(self, port: AttemptPort, child_ids: ChildIds, bounds: Bounds) -> None:
        self._port = port
        self._child_ids = child_ids
        self._bounds = bounds
        self._edges = 0
        self._ids: set[str] = set()
        self.children: list[NewJob] = []

    def queue(self, said: Said, before: CohortTrees, outer: Mapping[str, object], *, gated: bool = False) -> list[str]:
        """Add the jobs of all cohorts, of which the first waits for `before`; return their ids.

        `outer` are the options of the cohort in which this Result is nested, and `gated` says whether that one came by
        `.next`. The cohort after an empty cohort waits for what the empty one would have waited for.
        """
        ids: list[str] = []
        for number, cohort in enumerate(said.cohorts):
            outer_options = outer if number == 0 else _without_gate_options(outer)
            options = merge_options(outer_options, cast("Mapping[str, object]", cohort.options))
            cohort_ids = list(self._cohort(cohort.items, before, options, gated=gated or cohort.follows))
            ids.extend(cohort_ids)
            if cohort_ids:
                before = _trees(cohort_ids)
        return ids

    def _cohort(
        self, items: Iterable[object], before: CohortTrees, options: Mapping[str, object], *, gated: bool
    ) -> Iterable[str]:
        for item in items:
            if isinstance(item, Result):
                yield from self.queue(cast("Result[object, object]", item).said, before, options, gated=gated)
            else:
                yield self._job(cast("Job[Any, Any]", item), before, options, gated=gated)

    def _job(self, job: Job[Any, Any], before: CohortTrees, options: Mapping[str, object], *, gated: bool) -> str:
        job = self._child_ids.child(job)
        merged = merge_options(options, cast("Mapping[str, object]", job.options))
        if gated:
            merged = {**merged, "depends_on": (before, *as_tuple(merged.get("depends_on", ())))}
        self._check_bounds(before)
        job_id = str(merged.get("id", job.id))
        if job_id in self._ids:
            raise InvalidInput(
                f"job {job_id} of type {job.type.name} is queued twice in one Result: "
                "queue job.again() the second time",
                field="id",
            )
        self._ids.add(job_id)
        new = self._port.prepare(structs.replace(job, options=cast("EnqueueOptions", merged)))
        self.children.append(child_of(self._port.job, new))
        return new.id

    def _check_bounds(self, before: CohortTrees) -> None:
        self._edges += len(before.refs)
        if len(self.children) >= self._bounds.children_max:
            raise LimitExceeded(
                f"a job queues more than children_max={self._bounds.children_max:,} when it completes: "
                "nest them in fewer jobs that queue the rest, or use ctx.spawn_many",
                field="queue",
            )
        if self._edges > self._bounds.cohort_edges_max:
            raise LimitExceeded(
                f"the jobs in .next(...) wait for those before them in more than cohort_edges_max="
                f"{self._bounds.cohort_edges_max:,} pairs: put one job between two large cohorts",
                field="next",
            )


def _trees(ids: Iterable[str]) -> CohortTrees:
    return CohortTrees(tuple(ParentRef(ParentKind.TREE, each) for each in ids))


def _without_gate_options(options: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in options.items() if name not in _GATE_OPTIONS}
