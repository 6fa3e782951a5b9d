"""Jobs, groups and workflows that streams name: read after every hint and once a second, in one read for all streams.

Such a stream misses no change for good, whoever made it: what it has not seen is told when it is read. Changes that
follow one another faster are told as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from ropewalk.client.app_state import AppState
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant
from ropewalk.errors import StoreUnavailable
from ropewalk.http.events.feed import shown_error
from ropewalk.http.events.shapes import StreamedEvent
from ropewalk.http.wire import JobState, timestamp
from ropewalk.ports.notifier import Hint

Kind: TypeAlias = Literal["job", "group", "workflow"]
Watched: TypeAlias = tuple[str, Kind, str]
"""A tenant, what is named, and its id."""
Tell: TypeAlias = Callable[[StreamedEvent], None]

EVERY_SECONDS: Final = 1.0
READ_AT_MOST: Final = 1000
_KINDS: Final = {
    State.RUNNING: "STARTED",
    State.COMPLETED: "SUCCEEDED",
    State.FAILED: "FAILED",
    State.RETRYING: "FAILED",
    State.DEAD_LETTER: "DEAD_LETTERED",
    State.CANCELLED: "CANCELLED",
}


class Watcher:
    """Reads what is watched, and tells each stream what it has not seen."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self._watches: dict[Watched, set[_Watch]] = {}
        self._hinted = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def watch(self, named: Iterable[Watched], tell: Tell) -> Callable[[], None]:
        """Tells the state of these now, and every change, until the returned function is called."""
        watch = _Watch(tell)
        wanted = list(named)
        for each in wanted:
            self._watches.setdefault(each, set()).add(watch)
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_for_ever())
        self._hinted.set()

        def forget() -> None:
            for each in wanted:
                watches = self._watches.get(each, set())
                watches.discard(watch)
                if not watches:
                    self._watches.pop(each, None)

        return forget

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read_for_ever(self) -> None:
        loop = asyncio.get_running_loop()

        def hear(_: Hint) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._hinted.set)

        unsubscribe = self._app_state.store.notifier.subscribe(hear)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_SECONDS):
                        await self._hinted.wait()
                self._hinted.clear()
                if self._watches:
                    await self._try_to_read()
        finally:
            unsubscribe()

    async def _try_to_read(self) -> None:
        """Reads once. An error ends this reading and not the loop: what is missed is told by a later reading."""
        try:
            await self._read()
        except StoreUnavailable:
            return
        except Exception as error:
            self._app_state.events.report(error, "events")

    async def _read(self) -> None:
        by_tenant: dict[str, list[str]] = {}
        for tenant, kind, name in list(self._watches):
            if kind == "job":
                by_tenant.setdefault(tenant, []).append(name)
            else:
                await self._read_members(tenant, kind, name)
        for tenant, ids in by_tenant.items():
            snapshot = await self._app_state.store.get(tenant, ids)
            for job in snapshot.jobs.values():
                self._tell((tenant, "job", job.id), job, snapshot.now)

    async def _read_members(self, tenant: str, kind: Kind, name: str) -> None:
        wanted = Filter(group_id=name) if kind == "group" else Filter(workflow_id=name)
        page = await self._app_state.store.search(
            tenant, wanted, order=Order.UPDATED_DESC, cursor=None, limit=READ_AT_MOST
        )
        for job in reversed(page.jobs):
            self._tell((tenant, kind, name), job, page.now)

    def _tell(self, watched: Watched, job: JobRecord, now: Instant) -> None:
        for watch in list(self._watches.get(watched, ())):
            watch.see(job, now)


class _Watch:
    """What one stream has seen of the jobs that it watches."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._seen: dict[str, tuple[int, State, object]] = {}

    def see(self, job: JobRecord, now: Instant) -> None:
        state = job.state_at(now)
        seen, new = self._seen.get(job.id), (job.rev, state, job.progress)
        if seen == new:
            return
        self._seen[job.id] = new
        only_progress = seen is not None and seen[:2] == new[:2]
        self._tell(
            StreamedEvent(
                kind="PROGRESS" if only_progress else _KINDS.get(state, "QUEUED"),
                job_id=job.id,
                type=job.type,
                queue=job.queue,
                tenant=job.tenant,
                state=JobState.of(state),
                attempt=job.attempt,
                group_id=job.group_id or job.id,
                rev=job.rev,
                at=timestamp(job.updated_at),
                error=shown_error(job.error),
            )
        )
