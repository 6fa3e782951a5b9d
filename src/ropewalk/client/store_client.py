"""The client of the app itself: it has a tenant like every client, and also the methods that concern all tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ropewalk.client.client import Client
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain import checks
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.errors import NotFound
from ropewalk.observe.events import Event
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import QUOTAS
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.limits import LimitUse


class StoreClient(Client):
    """The methods of `app` in addition to those of one tenant. A client that `tenant` returns has none of them."""

    _store_wide = True

    def tenant(self, name: str) -> Client:
        """Return a client for the jobs of another tenant, which cannot reach any other tenant."""
        return Client(self._app_state, self._name(name, "tenant"))

    def operator(self, tenant: str) -> StoreClient:
        """Return a client for the jobs of a tenant that also has the methods of the app, for the operators of the
        store."""
        return StoreClient(self._app_state, self._name(tenant, "tenant"))

    async def workers(self) -> list[WorkerCard]:
        """Return the workers of the store, whatever tenants they serve."""
        return await (await self._store()).workers()

    async def drain_worker(self, worker_id: str) -> None:
        """Ask a worker, wherever it runs, to stop as after SIGTERM: it finishes its running jobs and gives back the
        rest.

        The worker learns of it at once if wake-ups arrive, and otherwise within a third of its lease. Raises NotFound.
        """
        checks.text(worker_id, "worker_id")
        if not await (await self._store()).drain(worker_id):
            raise NotFound(
                f"no worker {worker_id!r}: it has stopped, or never existed "
                "(see app.workers() or `ropewalk workers list`)"
            )
        self._app_state.store.notifier.publish(Hint(control=True))

    async def set_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        concurrency: int | None = None,
        rate: Rate | None = None,
        every_tenant: bool = False,
    ) -> None:
        """Limit a queue, a type or a key from the next claim on. An existing limit is replaced.

        The limit applies to the jobs of this tenant, or with `every_tenant` to those of all tenants together.

        >>> await app.set_limit(key="stripe", concurrency=5, rate=Rate(100, per=1))
        >>> await app.set_limit(key="customer:*", concurrency=1)    # for each such key separately
        """
        await self._put_limit(queue, type, key, concurrency, rate, every_tenant=every_tenant)

    async def remove_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        every_tenant: bool = False,
    ) -> bool:
        """Remove a limit. Returns False if there was none. A limit that code declares is stored again when the next
        worker starts."""
        return await self._remove_limit(queue, type, key, every_tenant=every_tenant)

    async def limits(self, *, every_tenant: bool = False) -> list[LimitUse]:
        """Return every limit of this tenant, or of all tenants together, with the number of jobs that run under it
        now."""
        return await self._limits(every_tenant=every_tenant)

    async def quotas(self) -> list[Quota]:
        """Return the quotas of all tenants, ordered by tenant."""
        return await QUOTAS.of(await self._store()).quotas()

    async def events(self, *, every_tenant: bool = False, failures_only: bool = False) -> AsyncIterator[Event]:
        """Yield the events of this process, after each commit, from now on. Events of other processes are not among
        them.

        failures_only: only events about attempts and jobs that failed, expired or were lost; a job that completes then
            costs nothing.
        """
        async for event in self._events(every_tenant=every_tenant, failures_only=failures_only):
            yield event
