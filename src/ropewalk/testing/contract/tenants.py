"""Tenants learn nothing of one another, not even that another tenant exists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.core import Store
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, keyed

VERBS: dict[str, Callable[[Store, str, str], Awaitable[object]]] = {
    "get": lambda store, tenant, job_id: store.get(tenant, [job_id]),
    "trail": lambda store, tenant, job_id: store.history(tenant, job_id),
    "search": lambda store, tenant, job_id: store.search(
        tenant, Filter(text=job_id), order=Order.CREATED_ASC, cursor=None, limit=9
    ),
    "count": lambda store, tenant, job_id: store.count(tenant, Filter(text=job_id)),
    "cancel": lambda store, tenant, job_id: store.cancel(tenant, [job_id], reason=None, force=True),
    "retry": lambda store, tenant, job_id: store.retry(tenant, [job_id], RetryRequest(include_cancelled=True)),
    "update": lambda store, tenant, job_id: store.update(tenant, job_id, UpdateRequest(run_now=True)),
    "delete": lambda store, tenant, job_id: store.delete(tenant, [job_id]),
}


class TenantContract(Contract):
    """Nothing of one tenant reveals or changes anything of another, not even whether it exists (safe-15)."""

    @pytest.mark.parametrize("state", [State.DELAYED, State.SCHEDULED, State.RUNNING, State.FAILED, State.CANCELLED])
    @pytest.mark.parametrize("verb", list(VERBS))
    async def test_a_foreign_id_answers_like_a_missing_one(self, bench: Bench, verb: str, state: State) -> None:
        job_id = await _foreign(bench, state)
        before = await bench.stored_history(job_id, tenant="acme")
        ask = VERBS[verb]
        foreign = await ask(bench.store, "zeta", job_id)
        missing = await ask(bench.store, "zeta", "job-that-never-was")
        assert repr(foreign).replace(job_id, "job-that-never-was") == repr(missing)
        assert await bench.stored_history(job_id, tenant="acme") == before

    async def test_an_empty_filter_finds_only_jobs_of_its_tenant(self, bench: Bench) -> None:
        await bench.add(id="mine", tenant="acme")
        await bench.add(id="yours", tenant="zeta")
        page = await bench.store.search("acme", Filter(), order=Order.UPDATED_DESC, cursor=None, limit=9)
        assert [job.id for job in page.jobs] == ["mine"]
        assert await bench.store.count("acme", Filter()) == 1
        assert await bench.store.count("nobody", Filter()) == 0
        assert await bench.store.queues("nobody") == []

    async def test_spawned_children_and_compensations_stay_inside_their_tenant(self, bench: Bench) -> None:
        for tenant in ("acme", "zeta"):
            [child] = await bench.submit(keyed("k", tenant=tenant, parent_id="p", spawn_key="s"))
            assert not child.duplicate

    async def test_once_is_per_tenant(self, bench: Bench) -> None:
        """C9."""
        assert await bench.store.once("acme", "k", HOUR)
        assert await bench.store.once("zeta", "k", HOUR)

    async def test_pausing_is_per_tenant(self, bench: Bench) -> None:
        await bench.store.pause("acme", "default", paused=True)
        await bench.add(tenant="acme")
        mine = await bench.add(tenant="zeta")
        assert [job.id for job in await bench.claim(9)] == [mine]
        assert [queue.paused for queue in await bench.store.queues("zeta")] == [False]


async def _foreign(bench: Bench, state: State) -> str:
    """A job of tenant acme in this state."""
    delay_us = 5 * SECOND if state is State.DELAYED else 0
    job_id = await bench.add(id="secret-7f3a", tenant="acme", delay_us=delay_us)
    if state in (State.RUNNING, State.FAILED, State.CANCELLED):
        job = await bench.claim_one()
        if state is not State.RUNNING:
            await bench.settle(job, Move.FAIL if state is State.FAILED else Move.CANCEL, error=BOOM)
    assert await bench.state(job_id, tenant="acme") is state
    return job_id
