"""Quotas of tenants, and what was submitted under their rates. Waiting jobs are counted from the lanes whenever a
number is needed."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.memory.job_index import Leases
from ropewalk.backends.memory.lanes import Lanes
from ropewalk.backends.memory.limits import FlowLimits
from ropewalk.domain.limits.quota import Admission, Allowance, Quota, QuotaCharge, Quotas, QuotaUse
from ropewalk.domain.limits.rate import used
from ropewalk.domain.time import Instant
from ropewalk.ports.store.submission import Submission


class TenantQuotas:
    """All quotas."""

    def __init__(self, lanes: Lanes, leases: Leases, limits: FlowLimits) -> None:
        self._lanes = lanes
        self._leases = leases
        self._limits = limits
        self._quotas = Quotas()
        self._charges: dict[str, QuotaCharge] = {}

    def put(self, quota: Quota) -> None:
        self._quotas = Quotas([*self._quotas.by_tenant.values(), quota])
        if (running_limit := quota.running_limit) is None:
            self._limits.remove(quota.tenant, "tenant", quota.tenant)
        else:
            self._limits.put(running_limit)

    def remove(self, tenant: str) -> bool:
        if tenant not in self._quotas.by_tenant:
            return False
        self._quotas = Quotas(quota for quota in self._quotas.by_tenant.values() if quota.tenant != tenant)
        self._limits.remove(tenant, "tenant", tenant)
        return True

    def kept(self) -> list[Quota]:
        return [quota for _, quota in sorted(self._quotas.by_tenant.items())]

    def use(self, tenant: str, now: Instant) -> QuotaUse | None:
        quota = self._quotas.of(tenant)
        if quota is None:
            return None
        rate, charge = quota.submissions, self._charges.get(tenant)
        state = None if rate is None or charge is None else charge.under(rate)
        return QuotaUse(
            quota=quota,
            pending=self._lanes.count(tenant),
            running=sum(job.tenant == tenant for job in self._leases),
            submissions=0 if rate is None else used(rate, state, now),
        )

    def admission(self, submissions: Sequence[Submission], now: Instant) -> Admission:
        outside = {new.tenant for submission in submissions if submission.under is None for new in submission.jobs}
        return Admission(
            {
                tenant: Allowance(quota, waiting=self._lanes.count(tenant), charge=self._charges.get(tenant), now=now)
                for tenant, quota in self._quotas.for_tenants(outside).items()
            }
        )

    def keep_charges(self, admission: Admission) -> None:
        self._charges |= admission.charges()
