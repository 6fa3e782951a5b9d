"""Fleet limits (FlowLimit): their rows, and how a claim measures them.

The running jobs are counted each time and not stored as a number, so that no crash can leave a wrong number. Two claims
must not use the same room: a claim that gives out jobs under a limit locks the row of the limit until it commits, and
counts in a later statement than the one that locked the row. A lane with a limit that another claim has locked is
skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

import msgspec

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.lanes import LaneBook, limits_in
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitId, LimitKind, LimitRules, Measure
from ropewalk.domain.limits.headroom import FullLimit, HeadroomByLane, LimitHeadroom
from ropewalk.domain.limits.rate import RateState, idle_at
from ropewalk.domain.time import MINUTE
from ropewalk.ports.store.limits import LimitUse

Counted: TypeAlias = dict[LaneName, int]
"""The number of running jobs of each lane."""

_counts = msgspec.json.Decoder(list[tuple[int, int]])
_states = Rows("fleet_rate", tuple[str, LimitKind, str, str, RateState])


class ClaimLimits:
    """The limits in one claim, or in one submission that a worker claims at once: which lanes have room."""

    def __init__(self, tx: Tx, lanes: LaneBook, rules: LimitRules) -> None:
        self._tx = tx
        self._lanes = lanes
        self._rules = rules
        self._held: dict[LimitId, FlowLimit | None] = {}
        """The limits that this claim has locked, as they are now; None if another claim has locked it or it was
        removed."""
        self._known: dict[Measure, LimitHeadroom] = {}
        self.headroom: HeadroomByLane[int] = HeadroomByLane(tx.now)

    def measure(self, lanes: Collection[int]) -> None:
        """Locks and measures the limits on these lanes."""
        for lane, headrooms in self._on(lanes).items():
            if headrooms is None:
                self.headroom.pass_over(lane)
            elif headrooms:
                self.headroom.put(lane, headrooms)

    def open_among(self, lanes: Collection[int]) -> list[int]:
        """Returns the lanes whose limits have room. The limits of the other lanes count as measured: nothing is given
        out there, and the claim knows when there may be room again."""
        on = self._on(lanes)
        found = [
            lane for lane in lanes if (headrooms := on[lane]) is not None and not any(each.full for each in headrooms)
        ]
        self.measure([lane for lane in lanes if lane not in found])
        return found

    def _on(self, lanes: Collection[int]) -> dict[int, list[LimitHeadroom] | None]:
        """Returns the limits on each lane; None for a lane of which another claim has locked a limit."""
        names = self._lanes.names_of(self._tx, lanes)
        met = {lane: self._rules.on(names[lane]) for lane in lanes}
        self._hold({each.limit for measures in met.values() for each in measures})
        free = {lane: measures for lane, measures in met.items() if all(self._held[each.limit] for each in measures)}
        self._measure({each for measures in free.values() for each in measures})
        return {lane: [self._known[each] for each in free[lane]] if lane in free else None for lane in lanes}

    def write_rates(self) -> None:
        """Writes the starts that this claim used up of rates."""
        rows: list[tuple[SqlValue, ...]] = []
        for each in self.headroom.used():
            rate, grant = each.limit.rate, each.grant
            if rate is not None and grant is not None:
                state = msgspec.json.encode(grant.state).decode()
                rows.append((*each.measure.limit, each.measure.name, idle_at(rate, grant.state), state))
        self._tx.run_rows(self._tx.sql.put_rates, rows)

    def exhausted(self, measures: Iterable[Measure]) -> list[FullLimit]:
        """Returns those of the limits that have no room."""
        self._hold({each.limit for each in measures})
        free = [each for each in measures if self._held[each.limit] is not None]
        self._measure(set(free))
        return [self._known[each].as_full_limit() for each in free if self._known[each].full]

    def _hold(self, wanted: set[LimitId]) -> None:
        new = sorted(wanted - self._held.keys())
        if new:
            found = self._tx.value(self._tx.sql.lock_limits, (msgspec.json.encode(new).decode(),))
            self._held |= dict.fromkeys(new) | {limit.id: limit for limit in limits_in(self._tx, found)}

    def _measure(self, wanted: set[Measure]) -> None:
        new = [each for each in wanted if each not in self._known]
        if not new:
            return
        in_use = self._rules.in_use(running(self._tx, self._lanes))
        states = self._states(new)
        for each in new:
            limit = self._held[each.limit]
            assert limit is not None, "only what is held is measured"
            self._known[each] = LimitHeadroom(limit, each, in_use[each], states.get(each), self._tx.now)

    def _states(self, measures: Iterable[Measure]) -> dict[Measure, RateState]:
        rated = [each for each in measures if (limit := self._held[each.limit]) is not None and limit.rate is not None]
        if not rated:
            return {}
        wanted = msgspec.json.encode([(*each.limit, each.name) for each in rated]).decode()
        found = _states.decode(self._tx, self._tx.value(self._tx.sql.rates_of, (wanted,)))
        return {Measure((tenant, kind, limit), name): state for tenant, kind, limit, name, state in found}


def put(tx: Tx, limit: FlowLimit) -> None:
    """Stores a limit, unless the one that is there takes precedence."""
    before = _rules(tx).limits.get(limit.id)
    if not limit.replaces(before):
        return
    if before is None or before.rate is None or not before.rate.goes_on_as(limit.rate):
        tx.run(tx.sql.forget_rates, limit.id)
    rate = limit.rate
    how_often = (None, None, None) if rate is None else (rate.count, rate.window_us, rate.algorithm)
    tx.run(tx.sql.put_limit, (*limit.id, limit.concurrency, *how_often, int(limit.declared)))
    tx.run(tx.sql.bump_control)


def remove(tx: Tx, tenant: str, kind: LimitKind, name: str) -> bool:
    """Deletes a limit. Returns False if there is none."""
    gone = tx.run(tx.sql.remove_limit, (tenant, kind, name)) == 1
    if gone:
        tx.run(tx.sql.forget_rates, (tenant, kind, name))
        tx.run(tx.sql.bump_control)
    return gone


def uses(tx: Tx, tenant: str) -> list[LimitUse]:
    """Returns the limits of a tenant and what is in use of them."""
    rules = _rules(tx)
    in_use = rules.in_use(running(tx, tx.lanes))
    return [LimitUse.of(limit, in_use) for limit in rules.of_tenant(tenant)]


def full_limits_for(tx: Tx, job: JobRecord) -> list[FullLimit]:
    """Returns the exhausted limits that keep a job from starting. Nothing is locked, because this only reads."""
    rules = _rules(tx)
    limits = ClaimLimits(tx, tx.lanes, rules)
    return limits.exhausted(rules.on(job.lane.above)) or limits.exhausted(rules.on(job.lane))


def prune(tx: Tx, limit: int) -> None:
    """Deletes idle rates, one minute late, because a claim that uses one may have read the clock a moment ago."""
    tx.run(tx.sql.prune_rates, (tx.now - MINUTE, limit))


def running(tx: Tx, lanes: LaneBook) -> Counted:
    """Returns the number of running jobs of each lane."""
    counts = dict(_counts.decode(tx.value(tx.sql.running_lanes)))
    names = lanes.names_of(tx, counts)
    return {names[lane]: number for lane, number in counts.items() if lane in names}


def _rules(tx: Tx) -> LimitRules:
    return LimitRules(limits_in(tx, tx.value(tx.sql.all_limits)))
