"""Random gates, steps, suspensions, signals and contributions for the calls of `differential`."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec import structs

from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.domain.workflow.dependency import NewGate, ParentKind, ParentRef
from ropewalk.domain.workflow.group_value import Contribution

signals = st.sampled_from(("ring", "knock"))
suspensions = st.builds(
    Suspension,
    position=st.integers(0, 1),
    name=st.just("wait"),
    signal=st.none() | signals,
    span_us=st.sampled_from((0, SECOND, 40 * SECOND)),
)
steps = st.builds(
    StepRecord,
    position=st.integers(0, 2),
    name=st.just("step"),
    kind=st.just("step"),
    value=st.none() | st.just(b"1"),
)
contributions = st.none() | st.builds(
    Contribution,
    type=st.just("a"),
    value=st.sampled_from((b"1", b"2.5")),
    reducer=st.sampled_from(("last", "last", "final", "list", "sum", "sum", "min", "custom")),
    expected_version=st.sampled_from((0, 0, 1)),
)
parent_kinds = st.lists(
    st.sampled_from((ParentKind.JOB, ParentKind.JOB, ParentKind.TREE, ParentKind.CHAIN)), min_size=4, max_size=4
)
gates = st.builds(
    NewGate,
    parents=st.just(()),
    need=st.sampled_from((1, 2, 4, 4)),
    of=st.sampled_from(("done", "success", "success")),
    policy=st.sampled_from((None, None, "fail", "cancel", "skip", "run")),
    timeout_us=st.sampled_from((None, None, SECOND, 40 * SECOND)),
    allow_missing=st.sampled_from((True, True, False)),
)
"""Gates without parents; `over` adds the parents."""


def over(gate: NewGate, kinds: list[ParentKind], ids: list[str]) -> NewGate:
    """Return the gate with these jobs as parents, each referred to in the way that `kinds` names."""
    parents = tuple(ParentRef(kind, each) for kind, each in zip(kinds, ids, strict=False))
    return structs.replace(gate, parents=parents, need=min(gate.need, len(parents)))


def after(job_id: str) -> NewGate:
    """Return a gate that opens when the tree of this job has succeeded."""
    return NewGate(parents=(ParentRef(ParentKind.TREE, job_id),), need=1, of="success")
