"""Quotas bound how many jobs of a tenant wait and run, and how many it submits. The quota of the tenant `*` applies to
every tenant where its own quota sets no bound."""

from __future__ import annotations

from ropewalk.client.operations.base import TenantOperations
from ropewalk.domain import checks
from ropewalk.domain.limits.quota import PENDING_MAX, Quota, QuotaUse
from ropewalk.domain.limits.rate import RATE_EXAMPLE, Rate
from ropewalk.errors import InvalidInput, LimitExceeded
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import QUOTAS


class QuotaOperations(TenantOperations):
    """Sets, removes and reads the quota of a tenant."""

    async def set_quota(
        self,
        *,
        pending: int | None = None,
        running: int | None = None,
        submissions: Rate | None = None,
        payload_bytes: int | None = None,
    ) -> None:
        """Set the quota of this tenant, from the next submission and claim on. An existing quota is replaced.

        >>> await app.tenant("acme").set_quota(pending=10_000, running=50, submissions=Rate(100, per=1))
        >>> await app.tenant("*").set_quota(pending=1000)    # for what a tenant's own quota does not set
        """
        checks.positive_or_none(pending, "pending")
        checks.positive_or_none(running, "running")
        checks.positive_or_none(payload_bytes, "payload_bytes")
        self._name(self._tenant, "tenant")
        if pending is not None and pending > PENDING_MAX:
            raise LimitExceeded(
                f"pending={pending:,} is over {PENDING_MAX:,}: every submission counts the waiting jobs, "
                "and so many would take too long; leave it out, or set submissions=",
                field="pending",
            )
        checks.instance_or_none(submissions, "submissions", Rate, RATE_EXAMPLE)
        quota = Quota(
            tenant=self._tenant,
            pending=pending,
            running=running,
            submissions=submissions,
            payload_bytes=payload_bytes,
        )
        if quota == Quota(tenant=self._tenant):
            raise InvalidInput(
                f"the quota of tenant {self._tenant!r} is empty: give pending, running, submissions or payload_bytes, "
                "or remove the quota",
                field="pending",
            )
        await QUOTAS.of(await self._store()).put_quota(quota)
        self._app_state.store.notifier.publish(Hint(control=True))

    async def remove_quota(self) -> bool:
        """Remove this tenant's own quota. Returns False if it had none."""
        gone = await QUOTAS.of(await self._store()).remove_quota(self._tenant)
        self._app_state.store.notifier.publish(Hint(control=True))
        return gone

    async def quota(self) -> QuotaUse | None:
        """Return the quota that applies to this tenant, and how much of it is used now; None if there is no bound."""
        return await QUOTAS.of(await self._store()).quota_use(self._tenant)
