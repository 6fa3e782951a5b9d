"""The capability to give tenants quotas.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from typing import Protocol

from ropewalk.domain.limits.quota import Quota, QuotaUse


class QuotaStore(Protocol):
    """A store with quotas of tenants (domain.limits.quota). A change applies from the next submission and claim on."""

    async def put_quota(self, quota: Quota) -> None:
        """Sets or replaces the quota of a tenant. The quota of `*` applies to what the quotas of tenants leave open.
        `running` becomes a limit of the kind "tenant". If window and algorithm of the rate stay the same, the state of
        the rate is kept."""
        ...

    async def remove_quota(self, tenant: str) -> bool:
        """Removes the quota of a tenant. Returns False if there was none."""
        ...

    async def quotas(self) -> list[Quota]:
        """Returns all quotas as they were set, ordered by tenant."""
        ...

    async def quota_use(self, tenant: str) -> QuotaUse | None:
        """Returns the quota that applies to a tenant and how much of it is in use; None if no quota applies."""
        ...
