"""R13: limits through an app and its workers: set, kept, changed and explained."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ropewalk import App, DefinitionError, Filter, InvalidInput, Limit, LimitExceeded, Rate, State, job
from ropewalk.ports.notifier import Hint
from tests.apps import MakeApp

inside: Counter[str] = Counter()
most: Counter[str] = Counter()
order: list[int] = []
gates: dict[int, asyncio.Event] = {}


@pytest.fixture(autouse=True)
def _forget() -> None:
    inside.clear()
    most.clear()
    order.clear()
    gates.clear()


@job(limit="provider")
async def call(key: str) -> None:
    inside[key] += 1
    most[key] = max(most[key], inside[key])
    await asyncio.sleep(0)
    inside[key] -= 1


@job
async def one_by_one(number: int) -> None:
    order.append(number)
    await asyncio.sleep(0)


@job(limit="door")
async def stand(number: int) -> None:
    order.append(number)
    await gates.setdefault(number, asyncio.Event()).wait()


@job(options=lambda given: {"limit": f"customer:{given['customer']}"})
async def serve(customer: str) -> None: ...


@job(max_attempts=1, on_failure=call)
async def fail(key: str) -> None:
    raise ValueError(key)


async def test_a_limit_holds_among_workers(make_app: MakeApp) -> None:
    """R13: however many slots they have together."""
    app = make_app(call)
    await app.set_limit(key="provider", concurrency=3)
    async with app, app.worker(concurrency=8), app.worker(concurrency=8):
        handles = await app.enqueue_many([call("x") for _ in range(60)])
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert 0 < most["x"] <= 3


async def test_a_key_runs_one_by_one_in_order(make_app: MakeApp) -> None:
    """R13: first come, first served, whichever worker."""
    app = make_app(one_by_one)
    await app.set_limit(key="line", concurrency=1)
    async with app, app.worker(concurrency=4), app.worker(concurrency=4):
        handles = await app.enqueue_many([one_by_one(number) for number in range(25)], limit="line")
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert order == list(range(25))


async def test_the_end_of_one_is_the_start_of_the_next(make_app: MakeApp) -> None:
    """R13: why names the limit; what waits starts when there is room, also when the limit is raised."""
    app = make_app(stand)
    await app.set_limit(key="door", concurrency=1)
    async with app.running() as worker:
        first, second, third = await app.enqueue_many([stand(number) for number in range(3)])
        await _until_running(app, first.id)
        why = await app.why(second.id)
        assert (why.cause, why.state) == ("limit", State.SCHEDULED)
        assert "1 of at most 1 jobs of key 'door' are running" in why.explanation
        gates[0].set()
        await first.result(timeout=10)
        await _until_running(app, second.id)
        await app.set_limit(key="door", concurrency=2)
        await _until_running(app, third.id)
        [use] = await app.limits()
        assert (use.limit.kind, use.limit.name, use.limit.concurrency, use.in_use) == ("key", "door", 2, 2)
        for number in (1, 2):
            gates[number].set()
        await worker.idle()


async def test_the_end_of_a_limited_job_is_told(make_app: MakeApp) -> None:
    """R13: other workers need not wait for their next look; of a job under no limit there is nothing to tell."""
    app = make_app(call, one_by_one)
    await app.set_limit(key="provider", concurrency=1)
    hints: list[Hint] = []
    async with app.running():
        forget = app._app_state.store.notifier.subscribe(hints.append)
        await app.enqueue(one_by_one(1), id="plain", queue="plain").result(timeout=10)
        await app.enqueue(call("x"), id="limited", queue="limited").result(timeout=10)
        await _until(lambda: {"plain", "limited"} <= {each for hint in hints for each in hint.finished})
        forget()
    freed = {queue for hint in hints if hint.finished for queue in hint.ready}
    assert freed == {"limited"}


async def test_a_rate_starts_the_next_when_its_time_has_come(make_app: MakeApp) -> None:
    """R13: the worker sleeps until then, not longer."""
    app = make_app(one_by_one)
    await app.set_limit(type=one_by_one, rate=Rate(2, per=timedelta(seconds=0.4)))
    async with app, app.worker(poll=60):
        loop = asyncio.get_running_loop()
        began = loop.time()
        handles = await app.enqueue_many([one_by_one(number) for number in range(5)])
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
        assert loop.time() - began >= 0.8


async def test_where_a_key_comes_from(make_app: MakeApp) -> None:
    """R13, D6: the call, the arguments, the type; None takes it away. A compensation has its type's."""
    app = make_app(call, serve, fail)

    async def key_of(job_id: str) -> str | None:
        return (await app._app_state.store.get("default", [job_id])).jobs[job_id].limit_key

    assert await key_of((await app.enqueue(call("x"))).id) == "provider"
    assert await key_of((await app.enqueue(call("x"), limit="other")).id) == "other"
    assert await key_of((await app.enqueue(call("x").using(limit=None))).id) is None
    assert await key_of((await app.enqueue(serve("ada"))).id) == "customer:ada"
    await app.enqueue(fail("x"), id="failing")
    async with app.worker(types=[fail]) as worker:
        await worker.idle()
    [undo] = (await app.search(Filter(parent_id="failing"))).jobs
    assert await key_of(undo.id) == "provider"


async def test_each_tenant_has_its_own(make_app: MakeApp) -> None:
    """safe-15."""
    app = make_app(call)
    await app.tenant("acme").set_limit(queue="mail", concurrency=1)
    assert await app.limits() == []
    assert not await app.remove_limit(queue="mail")
    assert [use.limit.name for use in await app.tenant("acme").limits()] == ["mail"]
    assert await app.tenant("acme").remove_limit(queue="mail")


def test_from_blocking_code(new_app: MakeApp) -> None:
    app = new_app(call)
    app.sync.set_limit(type="call", concurrency=1)
    assert [use.limit.name for use in app.sync.limits()] == ["call"]
    assert app.sync.tenant("acme").limits() == []
    assert app.sync.remove_limit(type=call)
    app.sync.close()


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({"concurrency": 1}, "key", "a limit needs exactly one of queue, type and key, and got none"),
        ({"key": "k", "queue": "q", "concurrency": 1}, "key", "and got queue='q' and key='k'"),
        ({"key": "k"}, "concurrency", "the limit of key 'k' is empty: give concurrency, rate or both"),
        ({"key": "k", "concurrency": 0}, "concurrency", "concurrency=0 must be at least 1"),
        ({"key": "k", "concurrency": True}, "concurrency", "concurrency=True must be a whole number"),
        ({"key": "k", "rate": 5}, "rate", "rate=5 must be a Rate"),
        ({"key": "", "concurrency": 1}, "key", "key is empty"),
        ({"type": 7, "concurrency": 1}, "type", "type=7 must be a job type"),
        ({"queue": "q" * 300, "concurrency": 1}, "queue", "over name_chars_max"),
    ],
)
async def test_what_is_no_limit_is_refused(
    make_app: MakeApp, arguments: dict[str, object], field: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        await make_app(call).set_limit(**arguments)  # type: ignore[arg-type]  # wrong on purpose
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("limit", "error"), [("", InvalidInput), (7, InvalidInput), ("family:*", InvalidInput), ("k" * 300, LimitExceeded)]
)
async def test_what_is_no_key_is_refused(make_app: MakeApp, limit: str, error: type[InvalidInput]) -> None:
    with pytest.raises(error) as refused:
        await make_app(call).enqueue(call("x"), limit=limit)
    assert refused.value.field == "limit"


async def _until_running(app: App, job_id: str) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not State.RUNNING:
            await asyncio.sleep(0.005)


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.005)


@job(limit=Limit(concurrency=2))
async def narrow(number: int) -> None:
    inside["narrow"] += 1
    most["narrow"] = max(most["narrow"], inside["narrow"])
    await asyncio.sleep(0)
    inside["narrow"] -= 1


@job(limit=Limit(key=lambda given: str(given["customer"]), concurrency=1))
async def in_turn(customer: int, number: int) -> None:
    inside[f"customer {customer}"] += 1
    most[f"customer {customer}"] = max(most[f"customer {customer}"], inside[f"customer {customer}"])
    await asyncio.sleep(0)
    inside[f"customer {customer}"] -= 1


async def test_what_a_type_declares_holds_from_the_first_job(make_app: MakeApp) -> None:
    """R13: for all tenants together; put into the store before the first claim."""
    app = make_app(narrow)
    async with app:
        handles = await app.enqueue_many([narrow(number) for number in range(10)])
        handles += await app.tenant("acme").enqueue_many([narrow(number) for number in range(10)])
        async with app.worker(concurrency=8), app.worker(concurrency=8):
            await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert 0 < most["narrow"] <= 2


async def test_a_computed_key_is_one_limit_for_each(make_app: MakeApp) -> None:
    """R13: and is told with the job."""
    app = make_app(in_turn)
    async with app, app.worker(concurrency=8):
        handles = await app.enqueue_many([in_turn(number % 2, number) for number in range(12)])
        await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
        [use] = await app.limits(every_tenant=True)
    assert (use.limit.name, use.limit.declared) == ("in_turn:*", True)
    assert (most["customer 0"], most["customer 1"]) == (1, 1)


async def test_what_was_set_at_run_time_outlives_a_start(make_app: MakeApp) -> None:
    """R13: the declaration is heard again when it is removed."""
    app = make_app(narrow)
    async with app:
        for change, expected in ((5, 5), (None, 2)):
            if change is None:
                await app.remove_limit(type=narrow, every_tenant=True)
            else:
                await app.set_limit(type=narrow, concurrency=change, every_tenant=True)
            async with app.worker():
                [use] = await app.limits(every_tenant=True)
                assert use.limit.concurrency == expected


async def test_two_types_cannot_declare_one_key_differently(make_app: MakeApp) -> None:
    """R13: the worker says which, and does not start."""

    @job(limit=Limit(key="mail", concurrency=1))
    async def one() -> None: ...

    @job(limit=Limit(key="mail", concurrency=2))
    async def two() -> None: ...

    app = make_app(one, two)
    async with app:
        with pytest.raises(DefinitionError, match="one and two declare different limits for key 'mail'"):
            async with app.worker():
                pass


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "says nothing"),
        ({"concurrency": 0}, "concurrency=0 must be at least 1"),
        ({"rate": 5}, "must be a Rate"),
        ({"key": "c:*", "concurrency": 1}, "names a family"),
        ({"key": 5, "concurrency": 1}, "key=5"),
    ],
)
def test_a_limit_that_cannot_be_meant(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        Limit(**wrong)


async def test_a_key_must_be_text(make_app: MakeApp) -> None:
    """R13: the enqueue says whose function returned what."""

    @job(limit=Limit(key=lambda given: given["number"], concurrency=1))  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType] # the mistake
    async def wrong(number: int) -> None: ...

    app = make_app(wrong)
    async with app:
        with pytest.raises(InvalidInput, match="key= of the limit of wrong returned 5"):
            await app.enqueue(wrong(5))
