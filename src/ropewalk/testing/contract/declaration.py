"""The capabilities that a store declares, and the refusal of calls that need others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, cast

import pytest

from ropewalk.app import App
from ropewalk.definitions.job_types.decorator import job
from ropewalk.domain.search import Filter, Order
from ropewalk.errors import Unsupported
from ropewalk.ports.store.capabilities import (
    ALL,
    DIAGNOSIS,
    LIMITS,
    LOGS,
    MIGRATIONS,
    QUOTAS,
    SCHEDULES,
    STATISTICS,
    USER_TRANSACTIONS,
    WORKFLOWS,
    Capability,
)
from ropewalk.ports.store.user_transactions import UserConnection
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.worker.services.redriver import Redrive

Asking: TypeAlias = Callable[[App, str], Awaitable[object]]
"""A call of an app that needs a capability; it gets the id of an existing job."""


@job(name="t")
async def plain() -> None:
    """Do nothing."""


async def _scheduled(app: App, _: str) -> None:
    app.schedule("s", every=60, job=plain())


async def _redriven(app: App, _: str) -> None:
    app.worker(redrive=Redrive(types=[plain]))


class _Connection:
    def close(self) -> None: ...


ASKED: Final[dict[str, tuple[Capability[Any], Asking]]] = {
    "a dependency": (WORKFLOWS, lambda app, job_id: app.enqueue(plain(), depends_on=job_id)),
    "a compensation": (WORKFLOWS, lambda app, _: app.enqueue(plain().using(on_failure=plain))),
    "a signal": (WORKFLOWS, lambda app, job_id: app.signal(job_id, "go")),
    "a completion from outside": (WORKFLOWS, lambda app, job_id: app.complete(job_id)),
    "a failure from outside": (WORKFLOWS, lambda app, job_id: app.fail(job_id, "no")),
    "a group": (WORKFLOWS, lambda app, job_id: app.group(job_id)),
    "the value of a group": (WORKFLOWS, lambda app, job_id: app.handle(job_id, plain).group(0)),
    "the end of a group": (WORKFLOWS, lambda app, job_id: app.cancel_group(job_id)),
    "a chain": (WORKFLOWS, lambda app, job_id: app.chain(job_id)),
    "the result of a chain": (WORKFLOWS, lambda app, job_id: app.handle(job_id, plain).chain(0)),
    "the deletion of a chain": (WORKFLOWS, lambda app, job_id: app.delete_chain(job_id)),
    "a workflow": (WORKFLOWS, lambda app, _: app.workflow("w")),
    "a limit key": (LIMITS, lambda app, _: app.enqueue(plain(), limit="k")),
    "setting a limit": (LIMITS, lambda app, _: app.set_limit(key="k", concurrency=1)),
    "removing a limit": (LIMITS, lambda app, _: app.remove_limit(key="k")),
    "limits": (LIMITS, lambda app, _: app.limits()),
    "setting a quota": (QUOTAS, lambda app, _: app.set_quota(pending=1)),
    "removing a quota": (QUOTAS, lambda app, _: app.remove_quota()),
    "a quota": (QUOTAS, lambda app, _: app.quota()),
    "quotas": (QUOTAS, lambda app, _: app.quotas()),
    "a declared schedule": (SCHEDULES, _scheduled),
    "creating a schedule": (SCHEDULES, lambda app, _: app.create_schedule("s", every=60, job=plain())),
    "editing a schedule": (SCHEDULES, lambda app, _: app.edit_schedule("s", every=60)),
    "triggering a schedule": (SCHEDULES, lambda app, _: app.trigger_schedule("s")),
    "a schedule": (SCHEDULES, lambda app, _: app.get_schedule("s")),
    "schedules": (SCHEDULES, lambda app, _: app.schedules()),
    "statistics": (STATISTICS, lambda app, _: app.stats()),
    "a redrive over all tenants": (STATISTICS, _redriven),
    "log lines": (LOGS, lambda app, job_id: app.logs(job_id)),
    "log lines with a job": (LOGS, lambda app, job_id: app.get(job_id, include="logs")),
    "dependencies with a job": (WORKFLOWS, lambda app, job_id: app.get(job_id, include="dependencies")),
    "a job in a transaction": (
        USER_TRANSACTIONS,
        lambda app, _: app.enqueue(plain(), connection=cast("UserConnection", _Connection())),
    ),
    "an examination": (DIAGNOSIS, lambda app, _: app.examine()),
}


class DeclarationContract(Contract):
    """A store has everything that it declares, and everything else is refused before anything is written (B1)."""

    async def test_the_store_declares_the_capabilities_that_its_test_class_names(self, bench: Bench) -> None:
        """A store that declares more than its test class names would keep promises that nobody tests."""
        assert bench.store.capabilities == type(self).capabilities

    async def test_the_store_has_a_name_for_messages(self, bench: Bench) -> None:
        """One word: messages say "the … store"."""
        assert bench.store.name == bench.store.name.strip()
        assert len(bench.store.name.split()) == 1

    async def test_a_declared_capability_is_the_store_itself(self, bench: Bench) -> None:
        for capability in ALL:
            declared = capability in bench.store.capabilities
            assert capability.if_declared(bench.store) is (bench.store if declared else None)

    async def test_an_undeclared_capability_is_refused_by_name(self, bench: Bench) -> None:
        for capability in ALL - bench.store.capabilities:
            with pytest.raises(Unsupported) as caught:
                capability.of(bench.store)
            assert (caught.value.store, caught.value.capability) == (bench.store.name, capability.name)
            assert bench.store.name in str(caught.value)
            assert capability.what in str(caught.value)

    async def test_every_call_that_needs_an_undeclared_capability_is_refused_before_anything_is_written(
        self, bench: Bench
    ) -> None:
        """By every way that leads to what it does not declare."""
        app = App(store=bench.store, jobs=[plain], runtime=bench.runtime)
        job_id = await bench.add()
        before = await _everything(bench)
        for name, (capability, asking) in ASKED.items():
            if capability not in bench.store.capabilities:
                with pytest.raises(Unsupported) as caught:
                    await asking(app, job_id)
                assert caught.value.capability == capability.name, name
                assert await _everything(bench) == before, name
        assert (app.migrating is None) == (MIGRATIONS not in bench.store.capabilities)

    @needs(MIGRATIONS)
    async def test_an_opened_store_has_the_newest_schema(self, bench: Bench) -> None:
        """B1: nothing is missing, and bringing it up to date again changes nothing."""
        state = await bench.store.schema()
        assert (state.applied, state.missing) == (state.newest, [])
        assert await bench.store.migrate() == state
        assert await bench.store.schema() == state


async def _everything(bench: Bench) -> list[object]:
    page = await bench.store.search("default", Filter(), order=Order.CREATED_ASC, cursor=None, limit=100)
    return [page.jobs, await bench.store.queues("default"), await bench.store.workers()]
