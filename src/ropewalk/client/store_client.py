"""The client of the app itself: it has a tenant like every client, and can do what concerns all tenants."""

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
    """What `app` offers beside the verbs of one tenant. A client that `tenant` gives out has none of this."""

    _store_wide = True

    def tenant(self, name: str) -> Client:
        """A client for the jobs of another tenant, which can do nothing beyond that tenant."""
        return Client(self._app_state, self._name(name, "tenant"))

    def operator(self, tenant: str) -> StoreClient:
        """A client for whoever runs the store: it looks after this tenant's jobs, and has all that the app has."""
        return StoreClient(self._app_state, self._name(tenant, "tenant"))

    async def workers(self) -> list[WorkerCard]:
        """The workers of the store, whichever tenants they serve."""
        return await (await self._store()).workers()

    async def drain_worker(self, worker_id: str) -> None:
        """Tell a worker, wherever it runs, to stop as SIGTERM would: it finishes what runs and gives the rest back.

        It hears of it at once where wake-ups arrive, else within a third of its lease. Raises NotFound.
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
        """Limit a queue, a type or a key, from the next claim on; a limit that is there is replaced.

        It holds for the jobs of this tenant, or with `every_tenant` for those of all tenants together.

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
        """Take a limit away. False: there was none. One that code declares comes back when the next worker starts."""
        return await self._take_limit_away(queue, type, key, every_tenant=every_tenant)

    async def limits(self, *, every_tenant: bool = False) -> list[LimitUse]:
        """Every limit of this tenant, or of all tenants together, by kind and name, with what runs under it now."""
        return await self._limits(every_tenant=every_tenant)

    async def quotas(self) -> list[Quota]:
        """Every quota that was set, of all tenants, by tenant."""
        return await QUOTAS.of(await self._store()).quotas()

    async def events(self, *, every_tenant: bool = False, failures_only: bool = False) -> AsyncIterator[Event]:
        """What happens in this process, after each commit, from now on. Other processes' events are not here.

        failures_only: attempts and jobs that failed, expired or were lost; jobs that complete cost nothing then.
        """
        async for event in self._events(every_tenant=every_tenant, failures_only=failures_only):
            yield event
