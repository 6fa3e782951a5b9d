"""Capability: quotas of tenants.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from typing import Protocol

from ropewalk.domain.limits.quota import Quota, QuotaUse


class QuotaStore(Protocol):
    """What a tenant may have waiting, running and coming in (domain.limits.quota), from the next submission and claim
    on."""

    async def put_quota(self, quota: Quota) -> None:
        """Make or replace the tenant's; that of `*` is for what others leave open. Its `running` is a limit of kind
        "tenant" from then on. What came in under its rate is kept where window and algorithm stay the same."""
        ...

    async def remove_quota(self, tenant: str) -> bool:
        """False: there was none."""
        ...

    async def quotas(self) -> list[Quota]:
        """As they were put, by tenant."""
        ...

    async def quota_use(self, tenant: str) -> QuotaUse | None:
        """What holds for a tenant; None: nothing does."""
        ...
