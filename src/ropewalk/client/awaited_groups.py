"""Which groups somebody waits for: known to the store while it lasts, and in this process a little longer.

A group can close between the moment its root was queued and the moment the store hears of the wait. In one process that
is told apart here: whoever waited just now is no reason to call the group an orphan.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ropewalk.domain.time import SECOND, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store

AWAITED_FOR: Final[Span] = 15 * SECOND
REFRESH_SECONDS: Final = 5.0

_Group: TypeAlias = tuple[str, str]


class Awaited:
    """Used from several threads: whole entries come and go, nothing is counted."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._seen: dict[_Group, float] = {}
        self._told: dict[_Group, float] = {}

    def here(self, tenant: str, group_id: str) -> bool:
        """Did somebody of this process wait for it just now?"""
        seen = self._seen.get((tenant, group_id))
        return seen is not None and self._runtime.monotonic() - seen < AWAITED_FOR / SECOND

    def note(self, tenant: str, group_id: str) -> None:
        now = self._runtime.monotonic()
        self._seen = _newer(self._seen, now - AWAITED_FOR / SECOND) | {(tenant, group_id): now}

    async def tell(self, store: Store, tenant: str, group_id: str) -> None:
        """The store, unless it was told a moment ago."""
        self.note(tenant, group_id)
        now = self._runtime.monotonic()
        if (tenant, group_id) in self._told and now - self._told[tenant, group_id] < REFRESH_SECONDS:
            return
        await store.await_group(tenant, group_id, AWAITED_FOR)
        self._told = _newer(self._told, now - REFRESH_SECONDS) | {(tenant, group_id): now}


def _newer(times: dict[_Group, float], than: float) -> dict[_Group, float]:
    return {group: at for group, at in times.items() if at > than}
