"""The groups for which somebody waits, so that they are not reported as orphan groups.

The store knows of a wait while it lasts; this process remembers it a little longer. A group may close after its root
was enqueued and before the store is informed of the wait. The store then records an orphan group, and the process that
waited knows that it is none.
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
"""A wait counts for this long after the store was informed of it, or after it was noted in this process."""
REFRESH_SECONDS: Final = 5.0
"""While a wait lasts, the store is informed of it this often. It is also asked this often whether any app has a hook
for orphan groups."""

TIDY_MIN: Final = 1024
"""Old entries are removed for the first time when there are this many."""

_Group: TypeAlias = tuple[str, str]


class RecentGroups:
    """Groups that were noted within the last `seconds`. Several threads may use it."""

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
        """Adds groups, or begins their time again."""
        now = self._runtime.monotonic()
        with self._lock:
            self._at.update((group, now) for group in groups)
            if len(self._at) >= self._tidy_at:
                self._at = {group: at for group, at in self._at.items() if now - at < self._seconds}
                self._tidy_at = max(TIDY_MIN, 2 * len(self._at))


class AwaitedGroups:
    """The groups for which this process waits. Several threads may use it without a lock, because entries are only
    replaced as a whole."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waited_here = RecentGroups(runtime, AWAITED_FOR / SECOND)
        self._store_knows = RecentGroups(runtime, REFRESH_SECONDS)
        self._asked_at: float | None = None
        """The time at which the store was last asked whether any app has a hook; None before the first time."""
        self._matters = False
        """Whether any app had a hook for orphan groups then."""

    def waited_here(self, tenant: str, group_id: str) -> bool:
        """Whether this process has waited for the group within the last 15 seconds."""
        return (tenant, group_id) in self._waited_here

    def store_knows(self, tenant: str, group_id: str) -> bool:
        """Whether the store was informed of a wait for the group within the last 5 seconds."""
        return (tenant, group_id) in self._store_knows

    def note(self, tenant: str, group_ids: Iterable[str]) -> None:
        """Records that this process waits for these groups."""
        self._waited_here.note((tenant, group_id) for group_id in group_ids)

    async def inform(self, store: WorkflowStore, tenant: str, roots: Sequence[JobRecord]) -> None:
        """Informs the store that somebody waits for these groups, if they could be reported as orphan groups."""
        self.note(tenant, [root.id for root in roots])
        now = self._runtime.monotonic()
        if self._asked_at is None or now - self._asked_at >= REFRESH_SECONDS:
            self._matters, self._asked_at = await store.orphans_are_taken(), now
        for root in roots:
            if (self._matters or root.flags & REPORT_ORPHAN) and not self.store_knows(tenant, root.id):
                await store.await_group(tenant, root.id, AWAITED_FOR)
                self._store_knows.note([(tenant, root.id)])
