"""A client of one tenant: every verb is classified, what concerns others is refused, and nothing of others is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from ropewalk import App, BeyondTenant, Filter, Handle, InvalidInput, Limit, NotFound, Rate, RopewalkError, job
from ropewalk.client.client import Client
from ropewalk.client.store_client import StoreClient
from ropewalk.sync import SyncApp, SyncClient
from tests.apps import MakeApp

SECRET = "bravo-secret"
NAME = "bravo-name"
"""Of a schedule, a queue and a workflow of the other tenant, which others may guess."""

Verb: TypeAlias = Callable[[Client, str], Any]
"""Asked of a client, with the id of a job that belongs to another tenant."""


@job
async def mail(to: str) -> str:
    if to == "nobody":
        raise ValueError(f"{SECRET} cannot be reached")
    return f"{to} {SECRET}"


@job(limit=Limit(concurrency=1, key="door"))
async def door(to: str) -> str:
    return to


LOOKS: dict[str, Verb] = {
    "get": lambda client, other: client.get(other),
    "states": lambda client, other: client.states([other]),
    "search": lambda client, _: client.search(Filter(types=["mail", "door"])),
    "count": lambda client, _: client.count(),
    "history": lambda client, other: client.history(other),
    "failure": lambda client, other: client.failure(other),
    "failures": lambda client, _: client.failures(),
    "failure_counts": lambda client, _: client.failure_counts(),
    "logs": lambda client, other: client.logs(other),
    "why": lambda client, other: client.why(other),
    "queues": lambda client, _: client.queues(),
    "now": lambda client, _: client.now(),
    "stats": lambda client, _: client.stats(by="both"),
    "group": lambda client, other: client.group(other),
    "chain": lambda client, other: client.chain(other),
    "workflow": lambda client, _: client.workflow(NAME),
    "schedules": lambda client, _: client.schedules(),
    "get_schedule": lambda client, _: client.get_schedule(NAME),
    "limits": lambda client, _: client.limits(),
    "quota": lambda client, _: client.quota(),
    "wait": lambda client, other: client.wait(other, timeout=5),
    "type_of": lambda client, other: client.type_of(other),
    "wait_for_record": lambda client, other: client.wait_for_record(other, 5),
    "wait_for_group": lambda client, other: client.wait_for_group(other, 5),
    "wait_for_chain": lambda client, other: client.wait_for_chain(other, 5),
}
"""What only looks. Nothing of another tenant is in the answer, or there is none such."""

CHANGES: dict[str, Verb] = {
    "cancel": lambda client, other: client.cancel(other),
    "cancel_many": lambda client, other: client.cancel_many([other]),
    "cancel_group": lambda client, other: client.cancel_group(other),
    "retry": lambda client, other: client.retry(other),
    "retry_many": lambda client, other: client.retry_many([other], include_cancelled=True),
    "trigger": lambda client, other: client.trigger(other),
    "update": lambda client, other: client.update(other, priority=100),
    "complete": lambda client, other: client.complete(other, "done"),
    "fail": lambda client, other: client.fail(other, "no"),
    "signal": lambda client, other: client.signal(other, "word"),
    "pause": lambda client, _: client.pause(NAME),
    "resume": lambda client, _: client.resume("paused"),
    "once": lambda client, _: client.once("only"),
    "create_schedule": lambda client, _: client.create_schedule("tick", every=60, job=mail("me")),
    "edit_schedule": lambda client, _: client.edit_schedule(NAME, every=5),
    "pause_schedule": lambda client, _: client.pause_schedule(NAME),
    "resume_schedule": lambda client, _: client.resume_schedule(NAME),
    "trigger_schedule": lambda client, _: client.trigger_schedule(NAME),
    "delete_schedule": lambda client, _: client.delete_schedule(NAME),
    "set_limit": lambda client, _: client.set_limit(queue="paused", concurrency=7),
    "remove_limit": lambda client, _: client.remove_limit(queue=NAME),
    "set_quota": lambda client, _: client.set_quota(pending=50),
    "remove_quota": lambda client, _: client.remove_quota(),
    "enqueue": lambda client, other: client.enqueue(mail("me"), depends_on=other),
    "enqueue_many": lambda client, _: client.enqueue_many([mail("me")]),
    "delete_chain": lambda client, other: client.delete_chain(other, cascade=True),
    "delete": lambda client, other: client.delete(other),
    "delete_many": lambda client, other: client.delete_many([other], cascade=True),
    "purge": lambda client, _: client.purge(queue=NAME),
}
"""What changes something. Nothing of another tenant is changed, and the answer tells nothing of it."""

ELSEWHERE = {
    "events": "test_events_are_those_of_the_tenant",
    "handle": "looks at nothing by itself",
    "named": "makes a job, and stores nothing",
    "enqueue_here": "test_a_job_for_another_tenant_is_refused",
    "decode_result": "decodes a record that the caller has",
}
ASKED_BY_NAME = {"workflow", *(name for name in (*LOOKS, *CHANGES) if name.endswith("_schedule"))}
"""Their answers name what they were asked for."""
WIDENED = {"set_limit", "remove_limit", "limits", "events"}
"""Verbs that the app has with `every_tenant=`."""
BEYOND = {"tenant", "operator", "workers", "drain_worker", "quotas"}
"""Verbs that only the app has."""


def _verbs(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_every_verb_is_classified() -> None:
    """A new verb of the client goes into one of the tables above: think about what it may see of other tenants."""
    assert _verbs(Client) == LOOKS.keys() | CHANGES.keys() | ELSEWHERE.keys()
    assert _verbs(StoreClient) - _verbs(Client) == BEYOND
    overridden = {name for name in vars(StoreClient) if not name.startswith("_")}
    assert overridden == BEYOND | WIDENED
    app_only = _verbs(SyncApp) - _verbs(SyncClient) - {"metrics", "close"}
    assert app_only == BEYOND - {"operator"}


@pytest.mark.parametrize("name", sorted(BEYOND))
async def test_what_concerns_others_is_not_there(make_app: MakeApp, name: str) -> None:
    app = make_app(mail)
    acme = app.tenant("acme")
    assert not hasattr(acme, name)
    with pytest.raises(BeyondTenant, match=rf"{name}\(\) concerns tenants other than 'acme': use the app itself"):
        getattr(acme, name)
    with pytest.raises(AttributeError):
        getattr(app.sync.tenant("acme"), name)


async def test_the_blocking_client_refuses_it_too(make_app: MakeApp) -> None:
    acme: Any = make_app(mail).sync.tenant("acme")
    for name in sorted(BEYOND - {"operator"}):
        with pytest.raises(BeyondTenant, match=rf"{name}\(\)"):
            getattr(acme, name)
    with pytest.raises(BeyondTenant):
        acme.limits(every_tenant=True)
    with pytest.raises(AttributeError, match="no attribute 'searches'"):
        _ = acme.searches


async def test_every_tenant_is_refused(make_app: MakeApp) -> None:
    app = make_app(mail)
    acme: Any = app.tenant("acme")
    for refused in (
        acme.set_limit(queue="q", concurrency=1, every_tenant=True),
        acme.remove_limit(queue="q", every_tenant=True),
        acme.limits(every_tenant=True),
        anext(acme.events(every_tenant=True)),
    ):
        with pytest.raises(BeyondTenant, match="every_tenant=True concerns tenants other than 'acme'"):
            await refused
    assert await app.limits(every_tenant=True) == []


async def test_a_job_for_another_tenant_is_refused(make_app: MakeApp) -> None:
    app = make_app(mail)
    acme = app.tenant("acme")
    other = mail("me").using(tenant="bravo")
    with pytest.raises(BeyondTenant, match="tenant='bravo' concerns tenants other than 'acme'"):
        await acme.enqueue(other)
    with pytest.raises(BeyondTenant):
        await acme.enqueue(mail("me"), tenant="bravo")
    with pytest.raises(BeyondTenant):
        await acme.enqueue_many([mail("me"), other])
    with pytest.raises(BeyondTenant):
        acme.enqueue_here([other], connection=None, portal=lambda work: work, options={})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="tenant"):
        await acme.create_schedule("tick", every=60, job=other)
    assert await app.tenant("bravo").count() == await acme.count() == 0
    assert (await acme.enqueue(mail("me"), tenant="acme")).id
    assert (await (await app.enqueue(other)).status()).tenant == "bravo"


async def test_a_handle_of_another_tenants_job_is_bound_to_that_tenant(make_app: MakeApp) -> None:
    handle: Handle[str, str] = await make_app(mail).enqueue(mail("me").using(tenant="bravo"))
    with pytest.raises(BeyondTenant):
        getattr(handle._client, "quotas")  # noqa: B009 # pyright knows that it is not there


@pytest.mark.parametrize("name", ["", "x" * 257])
async def test_a_tenant_has_a_name(make_app: MakeApp, name: str) -> None:
    """The empty name stands for all tenants together in the store."""
    app = make_app(mail)
    for give in (app.tenant, app.operator, app.sync.tenant):
        with pytest.raises(InvalidInput, match="tenant"):
            give(name)


async def test_an_operator_has_what_the_app_has(make_app: MakeApp) -> None:
    app = make_app(mail)
    handle = await app.tenant("acme").enqueue(mail("me"))
    operator = app.operator("acme")
    await operator.set_limit(queue="q", concurrency=1, every_tenant=True)
    assert (await operator.get(handle.id)).tenant == "acme"
    assert [use.limit.name for use in await operator.limits(every_tenant=True)] == ["q"]
    assert (await operator.workers(), await operator.quotas()) == ([], [])


@pytest.fixture
async def others(make_app: MakeApp) -> tuple[App, list[str]]:
    """An app with one tenant whose every word is secret, and the ids of its jobs: ended, failed, waiting."""
    app = make_app(mail, door)
    bravo = app.tenant("bravo")
    words: dict[str, Any] = {"tags": {SECRET: SECRET}, "workflow_id": NAME, "correlation_id": SECRET}
    done = await bravo.enqueue(mail(SECRET), queue=NAME, **words)
    failed = await bravo.enqueue(mail("nobody"), max_attempts=1, **words)
    async with app.worker(scheduler=False) as worker:
        await worker.idle()
    waiting = await bravo.enqueue(mail(SECRET), delay=600, idempotency_key=SECRET, **words)
    await bravo.enqueue(door(SECRET), queue="paused")
    await bravo.create_schedule(NAME, every=3600, job=mail(SECRET))
    await bravo.set_limit(queue=NAME, concurrency=3, rate=Rate(5, per=1))
    await bravo.set_quota(pending=77)
    await bravo.pause("paused")
    await bravo.once("only")
    return app, [done.id, failed.id, waiting.id]


async def _seen(app: App, ids: list[str]) -> list[object]:
    bravo = app.tenant("bravo")
    jobs = [await bravo.get(each) for each in ids]
    looks = [await bravo.schedules(), await bravo.limits(), await bravo.quota()]
    return [*jobs, *looks, await bravo.queues(), await bravo.count(), await bravo.once("only")]


@pytest.mark.parametrize("name", [*LOOKS, *CHANGES])
async def test_nothing_of_another_tenant_is_seen_or_changed(others: tuple[App, list[str]], name: str) -> None:
    app, ids = others
    before = await _seen(app, ids)
    verb = LOOKS.get(name) or CHANGES[name]
    for other in ids:
        acme = app.tenant(f"acme-{other}")
        told = await _told(verb, acme, other)
        assert SECRET not in told
        assert NAME not in told or name in ASKED_BY_NAME
        unknown = await _told(verb, app.tenant(f"empty-{other}"), "never-was")
        assert _kind(told) == _kind(unknown), "a job of another tenant is told from one that never was"
    assert await _seen(app, ids) == before


async def _told(verb: Verb, client: Client, other: str) -> str:
    try:
        answer = await verb(client, other)
    except RopewalkError as error:
        assert isinstance(error, NotFound | InvalidInput), error
        return f"{type(error).__name__}: {error}"
    return f"{type(answer).__name__}: {answer!r}"


def _kind(told: str) -> str:
    return told.partition(":")[0]


async def test_events_are_those_of_the_tenant(make_app: MakeApp) -> None:
    app = make_app(mail)
    heard: list[str] = []

    async def listen() -> None:
        async for event in app.tenant("acme").events():
            heard.append(event.tenant)
            return

    listening = asyncio.ensure_future(listen())
    async with asyncio.timeout(10):
        while not listening.done():
            await app.tenant("bravo").enqueue(mail(SECRET))
            await app.tenant("acme").enqueue(mail("me"))
            await asyncio.wait([listening], timeout=0.01)
    assert heard == ["acme"]
