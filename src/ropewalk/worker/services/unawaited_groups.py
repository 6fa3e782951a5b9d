"""Tells the app of groups that closed with nobody waiting: at least once each, under an id that stays the same."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from ropewalk.client.completion_checks import Awaited
from ropewalk.domain.time import SECOND, Span, to_datetime
from ropewalk.ports.store.messages import UnawaitedGroup
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext


class OrphanGroup(Struct, frozen=True, kw_only=True):
    """A group that closed with nobody waiting. `id` is the same however often it is told."""

    id: str
    group_id: str
    tenant: str
    closed_at: datetime


OrphanHook: TypeAlias = Callable[[OrphanGroup], Awaitable[object] | object]


class OrphansConfig(Struct, frozen=True):
    every_seconds: float = 5.0
    batch: int = 100
    hide_us: Span = 30 * SECOND
    """a hook that raises, or a worker that dies in it, is tried again after this"""


class UnawaitedGroups:
    def __init__(
        self, bench: WorkerContext, hook: OrphanHook, awaited: Awaited, config: OrphansConfig | None = None
    ) -> None:
        self._bench = bench
        self._hook = hook
        self._awaited = awaited
        self._config = config or OrphansConfig()
        self._wake = Wake(bench.runtime)

    def nudge(self) -> None:
        """A group closed just now."""
        self._wake.set()

    async def run(self) -> None:
        runtime = self._bench.runtime
        while True:
            await self._wake.wait(self._config.every_seconds * (0.5 + runtime.random()))
            while await self.run_once():
                pass

    async def run_once(self) -> bool:
        orphans = await self._bench.store.take_orphans(self._config.batch, self._config.hide_us)
        for orphan in orphans:
            if self._awaited.here(orphan.tenant, orphan.group_id) or await self._told(orphan):
                await self._bench.store.orphan_told(orphan.id)
        return len(orphans) >= self._config.batch

    async def _told(self, orphan: UnawaitedGroup) -> bool:
        group = OrphanGroup(
            id=orphan.id, group_id=orphan.group_id, tenant=orphan.tenant, closed_at=to_datetime(orphan.closed_at)
        )
        try:
            answer = self._hook(group)
            if inspect.isawaitable(answer):
                await answer
        except Exception as error:
            self._bench.events.report(error, "on_orphan_group")
            return False
        return True
