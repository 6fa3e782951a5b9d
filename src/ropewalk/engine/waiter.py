"""Waits for jobs to end: by hint, with a slow poll behind it in case hints are lost.

All waits of one loop share one look at the store, however many there are.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from ropewalk.domain.job import JobRecord
from ropewalk.engine.wake import Wake
from ropewalk.errors import NotFound, WaitTimeout
from ropewalk.ports.notifier import Hint, Unsubscribe
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store import Store

POLL_SECONDS: Final = 0.5
IDS_MAX: Final = 500

_Key = tuple[str, str]


class Waiter:
    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._waiting: dict[_Key, list[asyncio.Future[JobRecord]]] = defaultdict(list)
        self._hinted: set[str] = set()
        self._wake = Wake(runtime)
        self._looking = False
        self._check_all = False
        self._unsubscribe: Unsubscribe | None = None

    async def wait(self, tenant: str, job_id: str, timeout_seconds: float | None) -> JobRecord:
        """The record of the job once it is terminal. Raises NotFound, WaitTimeout."""
        answer: asyncio.Future[JobRecord] = asyncio.get_running_loop().create_future()
        key = (tenant, job_id)
        self._waiting[key].append(answer)
        self._look_for(job_id)
        timer = None
        if timeout_seconds is not None:
            timer = self._runtime.after(timeout_seconds, lambda: _time_is_up(answer, job_id, timeout_seconds))
        try:
            return await answer
        finally:
            if timer is not None:
                timer.cancel()
            self._forget(key, answer)

    def _look_for(self, job_id: str) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._store.notifier.subscribe(self._on_hint)
        self._hinted.add(job_id)
        self._wake.set()
        if not self._looking:
            self._looking = True
            self._runtime.spawn(self._look(), name="ropewalk-waiter")

    def _on_hint(self, hint: Hint) -> None:
        """Any thread."""
        if hint.many or any(job_id in self._ids for job_id in hint.finished):
            if hint.many:
                self._check_all = True
            self._hinted.update(hint.finished)
            self._wake.set_threadsafe()

    @property
    def _ids(self) -> set[str]:
        return {job_id for _, job_id in list(self._waiting)}

    async def _look(self) -> None:
        try:
            while self._waiting:
                woken = await self._wake.wait(POLL_SECONDS)
                await self._check(everything=not woken)
        finally:
            self._looking = False
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None

    async def _check(self, *, everything: bool) -> None:
        hinted, self._hinted = self._hinted, set()
        everything, self._check_all = everything or self._check_all, False
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for tenant, job_id in list(self._waiting):
            if everything or job_id in hinted:
                by_tenant[tenant].append(job_id)
        for tenant, ids in by_tenant.items():
            for start in range(0, len(ids), IDS_MAX):
                await self._check_some(tenant, ids[start : start + IDS_MAX])

    async def _check_some(self, tenant: str, ids: list[str]) -> None:
        try:
            found = (await self._store.get(tenant, ids)).jobs
        except Exception as error:
            for job_id in ids:
                self._answer((tenant, job_id), error)
            return
        for job_id in ids:
            job = found.get(job_id)
            if job is None:
                self._answer((tenant, job_id), NotFound(f"no job {job_id!r} (never submitted here, or deleted)"))
            elif job.terminal:
                self._answer((tenant, job_id), job)

    def _answer(self, key: _Key, answer: JobRecord | Exception) -> None:
        for future in self._waiting.get(key, ()):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _forget(self, key: _Key, answer: asyncio.Future[JobRecord]) -> None:
        futures = self._waiting[key]
        futures.remove(answer)
        if not futures:
            del self._waiting[key]
            if not self._waiting:
                self._wake.set()


def _time_is_up(answer: asyncio.Future[JobRecord], job_id: str, seconds: float) -> None:
    if not answer.done():
        answer.set_exception(WaitTimeout(f"job {job_id} did not end within {seconds:g} s"))
