"""Fleet limits, and what has started lately under their rates. Running jobs are counted from the leases whenever a
number is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ropewalk.backends.memory.job_index import Leases
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitId, LimitKind, LimitRules, Measure
from ropewalk.domain.limits.headroom import FullLimit, HeadroomByLane, LimitHeadroom
from ropewalk.domain.limits.rate import RateState, idle_at
from ropewalk.domain.time import Instant
from ropewalk.ports.store.limits import LimitUse


class FlowLimits:
    """All fleet limits."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._rules = LimitRules()
        self._states: dict[Measure, RateState] = {}

    def put(self, limit: FlowLimit) -> None:
        before = self._rules.limits.get(limit.id)
        if not limit.replaces(before):
            return
        if before is None or before.rate is None or not before.rate.goes_on_as(limit.rate):
            self._forget(limit.id)
        self._rules = LimitRules([*self._rules.limits.values(), limit])

    def remove(self, tenant: str, kind: LimitKind, name: str) -> bool:
        gone: LimitId = (tenant, kind, name)
        if gone not in self._rules.limits:
            return False
        self._forget(gone)
        self._rules = LimitRules(limit for limit in self._rules.limits.values() if limit.id != gone)
        return True

    def uses(self, tenant: str) -> list[LimitUse]:
        in_use = self._rules.in_use(self._running())
        return [LimitUse.of(limit, in_use) for limit in self._rules.of_tenant(tenant)]

    def headroom(self, lanes: Iterable[LaneName], now: Instant) -> HeadroomByLane[LaneName]:
        """The room these lanes have."""
        found: HeadroomByLane[LaneName] = HeadroomByLane(now)
        if not self._rules:
            return found
        in_use = self._rules.in_use(self._running())
        known: dict[Measure, LimitHeadroom] = {}

        def measured(lane: LaneName) -> list[LimitHeadroom]:
            measures = self._rules.on(lane)
            for each in measures:
                if each not in known:
                    limit = self._rules.limits[each.limit]
                    known[each] = LimitHeadroom(limit, each, in_use[each], self._states.get(each), now)
            return [known[each] for each in measures]

        for lane in lanes:
            above = measured(lane.above)
            headrooms = above if any(each.full for each in above) else measured(lane)
            if headrooms:
                found.put(lane, headrooms)
        return found

    def keep_rates(self, headroom: HeadroomByLane[LaneName]) -> None:
        """Keep what was given out of rates."""
        for each in headroom.used():
            if (grant := each.grant) is not None:
                self._states[each.measure] = grant.state

    def full_limits_for(self, job: JobRecord, now: Instant) -> list[FullLimit]:
        return self.headroom([job.lane], now).full_on(job.lane)

    def prune(self, now: Instant) -> None:
        """Forgets starts under rates that make no difference any more."""
        for measure, state in list(self._states.items()):
            rate = self._rules.limits[measure.limit].rate
            if rate is None or idle_at(rate, state) <= now:
                del self._states[measure]

    def _running(self) -> Counter[LaneName]:
        return Counter(job.lane for job in self._leases)

    def _forget(self, limit: LimitId) -> None:
        self._states = {measure: state for measure, state in self._states.items() if measure.limit != limit}
