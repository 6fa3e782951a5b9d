"""The groups that somebody waits for: the store knows while a wait lasts, and this process a little longer.

A group can close between the moment its root was queued and the moment the store hears of the wait. This process knows
better than the store then: whoever waited for the group just now is no reason to call it an orphan group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final, TypeAlias

from ropewalk.domain.jobs.flags import REPORT_ORPHAN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.workflows import WorkflowStore

AWAITED_FOR: Final[Span] = 15 * SECOND
REFRESH_SECONDS: Final = 5.0
"""How often the store hears of a wait, and is asked whether anybody wants to hear of groups without one."""

TIDY_MIN: Final = 1024
"""Groups to remember before those of long ago are dropped for the first time."""

_Group: TypeAlias = tuple[str, str]


class RecentGroups:
    """When something last happened to a group, for those to which it happened lately. Used from several threads."""

    def __init__(self, runtime: Runtime, seconds: float) -> None:
        self._runtime = runtime
        self._seconds = seconds
        self._at: dict[_Group, float] = {}
        self._tidy_at = TIDY_MIN
        self._lock = Lock()

    def __contains__(self, group: _Group) -> bool:
        at = self._at.get(group)
        return at is not None and self._runtime.monotonic() - at < self._seconds

    def note(self, groups: Iterable[_Group]) -> None:
        now = self._runtime.monotonic()
        with self._lock:
            self._at.update((group, now) for group in groups)
            if len(self._at) >= self._tidy_at:
                self._at = {group: at for group, at in self._at.items() if now - at < self._seconds}
                self._tidy_at = max(TIDY_MIN, 2 * len(self._at))


class AwaitedGroups:
    """The groups that this process waits for. Several threads use it: whole entries come and go, nothing is counted."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waited_here = RecentGroups(runtime, AWAITED_FOR / SECOND)
        self._store_knows = RecentGroups(runtime, REFRESH_SECONDS)
        self._asked_at: float | None = None
        self._matters = False
        """Whether somebody takes orphan groups, when the store was asked last."""

    def waited_here(self, tenant: str, group_id: str) -> bool:
        """Whether somebody in this process waited for the group just now."""
        return (tenant, group_id) in self._waited_here

    def store_knows(self, tenant: str, group_id: str) -> bool:
        """Whether the store heard of a wait for the group just now."""
        return (tenant, group_id) in self._store_knows

    def note(self, tenant: str, group_ids: Iterable[str]) -> None:
        self._waited_here.note((tenant, group_id) for group_id in group_ids)

    async def tell(self, store: WorkflowStore, tenant: str, roots: Sequence[JobRecord]) -> None:
        """Let the store know that somebody waits for these groups, where somebody would hear of them as orphans."""
        self.note(tenant, [root.id for root in roots])
        now = self._runtime.monotonic()
        if self._asked_at is None or now - self._asked_at >= REFRESH_SECONDS:
            self._matters, self._asked_at = await store.orphans_are_taken(), now
        for root in roots:
            if (self._matters or root.flags & REPORT_ORPHAN) and not self.store_knows(tenant, root.id):
                await store.await_group(tenant, root.id, AWAITED_FOR)
                self._store_knows.note([(tenant, root.id)])
