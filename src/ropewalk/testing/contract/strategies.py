"""Random values for the calls of `differential`.

They are drawn from few choices, so that calls often concern the same jobs, keys, queues and workers.
"""

from __future__ import annotations

from hypothesis import strategies as st

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.lease import TicketRange
from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import CompensationSpec, IdempotencyKey, NewJob, Progress
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import State
from ropewalk.domain.jobs.transition import AttemptTiming
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitKind
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import DAY, HOUR, SECOND
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.testing.contract import workflow_strategies
from ropewalk.testing.contract.builders import BOOM, LEASE, worker_card

TENANTS = ("acme", "zeta")
QUEUES = ("mail", "maps")
TYPES = ("a", "b", "undo")
OWNERS: tuple[str, ...] = ("w1", "w2")
LIMITED: tuple[tuple[LimitKind, str], ...] = (
    ("queue", "mail"),
    ("type", "a"),
    ("key", "k"),
    ("key", "c:*"),
    ("key", "c:1"),
)

tenants = st.sampled_from(("acme", "acme", "acme", "zeta"))
queues = st.sampled_from(QUEUES)
owners = st.sampled_from(OWNERS)
inputs = st.sampled_from((b'{"x":1}', b'{"x":2}'))
spans = st.sampled_from((0, 1, SECOND, 5 * SECOND, 40 * SECOND, 2 * HOUR))
short_spans = st.sampled_from((0, 0, 0, SECOND, 5 * SECOND))
long_spans = st.sampled_from((None, 5 * SECOND, 2 * HOUR, DAY))
seldom = st.sampled_from((False, False, False, True))
seconds_passing = st.sampled_from((0.000_001, 1.0, 4.999_999, 5.0, 3600.0, 90_000.0))
days_passing = st.sampled_from((0, 0, 0, 1, 9))
priorities = st.sampled_from((-1, 0, 0, 1))
progress = st.none() | st.builds(
    Progress, st.sampled_from((0.0, 12.5, 100.0)), st.none() | st.just("on it"), st.just(0)
)

idempotency_keys = st.builds(
    IdempotencyKey,
    key=st.sampled_from(("k", "k", "l")),
    scope=st.sampled_from(("open", "any")),
    window_us=st.sampled_from((5 * SECOND, HOUR, DAY)),
)
follow_ups = st.builds(
    CompensationSpec, type=st.just("undo"), accepts=st.none() | st.just(("x",)), queue=queues, max_attempts=st.just(1)
)
new_jobs = st.builds(
    NewJob,
    id=st.sampled_from([f"id-{number}" for number in range(100)]),
    type=st.sampled_from(TYPES[:2]),
    input=inputs,
    tenant=tenants,
    queue=queues,
    priority=priorities,
    strict_order=seldom,
    delay_us=short_spans,
    max_attempts=st.sampled_from((None, 1, 3, 3)),
    max_crashes=st.sampled_from((1, 3, 3)),
    backoff=st.none() | st.just(Backoff.constant(5)),
    lease_us=st.sampled_from((None, None, 5 * SECOND)),
    ttl_us=st.sampled_from((None, None, None, SECOND, 40 * SECOND, 2 * HOUR)),
    key=st.none() | idempotency_keys,
    tags=st.sampled_from(({}, {"colour": "red"})),
    correlation_id=st.none() | st.just("corr"),
    workflow_id=st.none() | st.just("w"),
    on_failure=st.none() | follow_ups,
    inherits_priority=seldom,
    report_orphan=seldom,
    limit_key=st.sampled_from((None, None, "k", "c:1", "c:2")),
)
rates = st.builds(
    Rate, st.integers(1, 3), st.sampled_from((1.0, 5.0, 3600.0)), st.sampled_from(("sliding", "fixed", "token"))
)
flow_limits = st.one_of(
    *(
        st.builds(
            FlowLimit,
            tenant=tenants | st.just(EVERY_TENANT),
            kind=st.just(kind),
            name=st.just(name),
            concurrency=st.integers(1, 3),
            rate=st.none() | st.none() | rates,
            declared=seldom,
        )
        for kind, name in LIMITED
    )
)
stats_queries = st.builds(
    StatsQuery,
    last_us=st.sampled_from((1, 50 * SECOND, HOUR, 7 * HOUR, 8 * DAY)),
    by=st.sampled_from(("type", "queue", "both")),
    queue=st.none() | queues,
    type=st.none() | st.sampled_from(TYPES),
    slices=st.sampled_from((1, 7, 60)),
)
quotas = st.builds(
    Quota,
    tenant=st.sampled_from((*TENANTS, "*")),
    pending=st.none() | st.integers(1, 9),
    running=st.none() | st.none() | st.integers(1, 4),
    submissions=st.none() | rates,
    payload_bytes=st.sampled_from((None, None, None, 6)),
)
claim_requests = st.builds(
    ClaimRequest,
    owner=owners,
    types=st.sampled_from((TYPES, TYPES, ("a",))).map(lambda types: dict.fromkeys(types, LEASE)),
    tenants=st.sampled_from((None, None, ("acme",))),
    queues=st.sampled_from((None, None, ("maps",))),
    slots=st.integers(0, 4),
    limit=st.integers(0, 8),
    room=st.sampled_from(({}, {}, dict.fromkeys(TYPES, 2), {"a": 1}, {"a": 0})),
    ignored=st.sampled_from((frozenset(), frozenset(), frozenset({1, 2}), frozenset({3, 4, 5}))),
    suspects=st.builds(Suspects, st.integers(0, 2), st.sampled_from((1, 2, 9)), st.sampled_from((2, 4, 9))),
    first_ticket=st.just(0),
    started_upto=st.just(0),
    unstarted=st.sampled_from(((), (), (1, 2), (3, 4, 5))),
    unanswered=st.sampled_from(((), (), (), (TicketRange(1, 2),), (TicketRange(2, 3), TicketRange(5, 9)))),
    turn=st.integers(0, 5),
    first=st.none() | st.tuples(tenants, queues),
)
"""Requests for claims; the machine sets their tickets."""

errors = st.sampled_from((BOOM, ErrorInfo(category=Category.PERMANENT, message="no", context={"k": "v"})))
outcomes = st.one_of(
    st.builds(Completed, st.none() | st.just(b"[1]")),
    st.builds(Errored, errors, st.none() | short_spans),
    st.builds(Crashed, errors),
    st.builds(Aborted, errors),
    st.builds(Deferred, delay_us=short_spans),
    st.builds(Released, short_spans),
    st.just(Expired()),
    st.builds(Cancelled, st.none() | errors),
    st.builds(Suspended, workflow_strategies.suspensions),
)
endings = st.tuples(outcomes, st.none() | st.builds(AttemptTiming, short_spans, short_spans))
"""Outcomes of attempts, each with the times that its worker measured or without them."""

retry_requests = st.builds(
    RetryRequest,
    reset_attempts=st.booleans(),
    priority=st.none() | priorities,
    delay_us=short_spans,
    fresh=seldom,
    include_cancelled=st.booleans(),
    cascade=st.booleans(),
    of_run=st.sampled_from((None, None, None, 1, 2)),
    from_step=st.sampled_from((None, None, None, "step", "wait")),
)
update_requests = st.builds(
    UpdateRequest,
    input=st.none() | inputs,
    priority=st.none() | priorities,
    run_now=st.booleans(),
    if_rev=st.sampled_from((None, None, None, 1, 2)),
)
retentions = st.builds(
    Retention,
    completed_us=long_spans,
    failed_us=long_spans,
    dead_letter_us=long_spans,
    cancelled_us=long_spans,
    results_us=st.none() | spans,
    types=st.sampled_from(({}, {"a": None}, {"b": HOUR})),
)
filters = st.builds(
    Filter,
    types=st.none() | st.just(("a",)),
    states=st.none() | st.lists(st.sampled_from(State), max_size=4).map(tuple),
    queues=st.none() | st.just(("mail",)),
    priorities=st.none() | st.just((0, 1)),
    tags=st.none() | st.just({"colour": "red"}),
    workflow_id=st.none() | st.just("w"),
    correlation_id=st.none() | st.just("corr"),
    error_codes=st.none() | st.just(("boom", "worker_lost")),
    text=st.none() | st.sampled_from(("id-1", "a", "k", "worker_lost")),
)


def cards(owner: str) -> WorkerCard:
    """Return the card of a worker that serves all types of the machine."""
    return worker_card(owner, types=TYPES)
