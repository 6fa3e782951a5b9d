"""A service reports orphan groups to the hook of the app: each group at least once, and always under the same id."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from ropewalk.client.awaited_groups import AwaitedGroups
from ropewalk.client.views.jobs import Describer
from ropewalk.client.views.workflows import UNFINISHED, group_value
from ropewalk.definitions.results.group_values import check_group, counts_of
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter
from ropewalk.domain.time import SECOND, Span, to_datetime
from ropewalk.domain.user_calls import guarded, guarded_await
from ropewalk.errors import StoreRefused, StoreUnavailable
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.workflows import GroupRecord, OrphanRecord
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.services.one_by_one import together_or_alone


class OrphanGroup(Struct, frozen=True, kw_only=True):
    """A group that closed while nobody waited for it, whichever client enqueued it.

    Its value and states are read when the hook is called: if the group was opened again meanwhile, they are the new
    ones.
    """

    id: str
    """The id of this report, which stays the same however often the hook is called for this end of the group."""
    group_id: str
    tenant: str
    closed_at: datetime
    states: Mapping[State, int] = {}
    """The number of its jobs in each state, with the root; empty if the group no longer exists."""
    value: object = None
    """The value of the group, decoded by the types that the worker knows. None may be the value; see
    `value_missing`."""
    value_missing: str | None = None
    """Why the value of the group is missing: it cannot be decoded, was deleted or is in conflict, or the group no
    longer exists; None if it is not missing."""


OrphanHook: TypeAlias = Callable[[OrphanGroup], Awaitable[object] | object]


class OrphansConfig(Struct, frozen=True):
    every_seconds: float = 5.0
    batch: int = 100
    hide_us: Span = 30 * SECOND
    """A group that a worker reports is hidden from other workers for this long; if its hook raised, it is reported
    again after that."""


class OrphanGroupReporter:
    """Calls the hook for every group that closed while nobody waited for it."""

    def __init__(
        self,
        worker_context: WorkerContext,
        hook: OrphanHook,
        awaited: AwaitedGroups,
        describe: Describer,
        config: OrphansConfig | None = None,
    ) -> None:
        self._worker_context = worker_context
        self._describe = describe
        self._store = WORKFLOWS.of(worker_context.store)
        self._hook = hook
        self._awaited = awaited
        self._config = config or OrphansConfig()
        self._wake = Wake(worker_context.runtime)

    def nudge(self) -> None:
        """Has the service run at once, because a group has just closed."""
        self._wake.set()

    async def run(self) -> None:
        runtime = self._worker_context.runtime
        while True:
            # The first call comes before the first wait, because it has the store record the orphan groups of all
            # clients.
            while await self.run_once():
                pass
            await self._wake.wait(self._config.every_seconds * (0.5 + runtime.random()))

    async def run_once(self) -> bool:
        orphans = await self._store.take_orphans(self._config.batch, self._config.hide_us)
        for orphan in orphans:
            await together_or_alone([orphan], self._report, self._failed)
        return len(orphans) >= self._config.batch

    async def _report(self, orphans: Sequence[OrphanRecord]) -> None:
        for orphan in orphans:
            if self._awaited.waited_here(orphan.tenant, orphan.group_id) or await self._reported(orphan):
                await self._store.orphan_reported(orphan.id)

    def _failed(self, orphan: OrphanRecord, error: Exception) -> None:
        """Reports the error of a group's hook. The group is reported again when it is no longer hidden."""
        self._worker_context.events.report(error, f"orphan group {orphan.group_id}")

    async def _reported(self, orphan: OrphanRecord) -> bool:
        group = await self._described(orphan)
        try:
            answer = guarded(self._hook, group)
            if inspect.isawaitable(answer):
                await guarded_await(answer)
        except Exception as error:
            self._worker_context.events.report(error, "on_orphan_group")
            return False
        return True

    async def _described(self, orphan: OrphanRecord) -> OrphanGroup:
        states: Mapping[State, int] = {}
        value: object = None
        missing: str | None = "the group is gone: deleted, or pruned after its retention"
        root = (await self._worker_context.store.get(orphan.tenant, [orphan.group_id])).jobs.get(orphan.group_id)
        if root is not None:
            try:
                record = (await self._store.groups(orphan.tenant, [root.id])).get(root.id)
            except StoreRefused as error:
                missing = str(error)
            else:
                states = await self._states(root, record)
                value, missing = await self._value(root, record)
        return OrphanGroup(
            id=orphan.id,
            group_id=orphan.group_id,
            tenant=orphan.tenant,
            closed_at=to_datetime(orphan.closed_at),
            states=states,
            value=value,
            value_missing=missing,
        )

    async def _states(self, root: JobRecord, record: GroupRecord | None) -> dict[State, int]:
        """Returns the number of jobs in each state from the counters of the group; the store counts only those states
        that the counters do not distinguish."""
        opened, completed, failed, cancelled = counts_of(root, record)
        dead = min(failed, await self._count(root, State.DEAD_LETTER)) if failed else 0
        states = {
            State.COMPLETED: completed,
            State.FAILED: failed - dead,
            State.DEAD_LETTER: dead,
            State.CANCELLED: cancelled,
        }
        if opened:
            states |= {state: await self._count(root, state) for state in UNFINISHED}
        return {state: number for state, number in states.items() if number}

    async def _count(self, root: JobRecord, state: State) -> int:
        return await self._worker_context.store.count(root.tenant, Filter(group_id=root.id, states=(state,)))

    async def _value(self, root: JobRecord, record: GroupRecord | None) -> tuple[object, str | None]:
        """Returns the decoded value, or None and the reason why there is none. A codec of the user's may raise
        anything."""
        try:
            check_group(root, record, raise_on_failure=False)
            return await guarded_await(group_value(self._store, root, record, self._describe)), None
        except StoreUnavailable:
            raise
        except Exception as error:
            return None, str(error) or type(error).__name__
