"""What people are told about common mistakes, and what is taken although it could be said in another way."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ropewalk import (
    App,
    Bounds,
    Context,
    DefinitionError,
    Filter,
    InvalidInput,
    JobFailed,
    LimitExceeded,
    Redrive,
    State,
    batch_job,
    job,
    next_after,
    schedule,
)
from tests.apps import MakeApp
from tests.inputs.values import mail

LATE = timedelta(hours=-1)


@batch_job(size=5, max_wait=0)
async def numbers(items: list[int]) -> list[int]:
    return items


# ── what is no job ──────────────────────────────────────────────────────────────────────────────────────────────────


async def plain() -> None: ...


async def test_a_call_that_was_forgotten(make_app: MakeApp) -> None:
    app = make_app(mail)
    with pytest.raises(InvalidInput, match=r"job=<job type mail .*> is no job; call it: enqueue\(mail\(\.\.\.\)\)"):
        app.enqueue(mail)  # type: ignore[call-overload] # that is the point
    with pytest.raises(InvalidInput, match=r"call it: enqueue\(mail\(\.\.\.\)\)"):
        app.sync.enqueue(mail)  # type: ignore[call-overload] # that is the point
    with pytest.raises(InvalidInput, match=r"call it: enqueue_many\(mail\(\.\.\.\)\)"):
        await app.enqueue_many([mail])  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidInput, match=r"job=None is no job; give what calling a job type makes"):
        app.enqueue(None)  # type: ignore[call-overload] # that is the point
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match=r"decorate the async function with @job"):
            app.enqueue(plain())  # type: ignore[call-overload] # that is the point
    assert await app.count() == 0


async def test_arguments_beside_a_job(make_app: MakeApp) -> None:
    app = make_app(mail)
    with pytest.raises(InvalidInput, match="arguments of a job go into the call that makes it") as refused:
        app.enqueue(mail(), {"to": "a@b.c"})  # type: ignore[call-overload] # that is the point
    assert refused.value.field == "arguments"


async def test_a_batch_item_that_counts_as_false_is_an_item(make_app: MakeApp) -> None:
    app = make_app(numbers)
    handle = await app.enqueue("numbers", 0)  # type: ignore[call-overload] # a batch type takes its item
    assert (await handle.status()).arguments == {"item": 0}


# ── one alone means that one ────────────────────────────────────────────────────────────────────────────────────────


async def test_one_name_alone_is_a_name(make_app: MakeApp) -> None:
    app = make_app(mail)
    ids = [(await app.enqueue(mail())).id for _ in range(2)]
    for one in (Filter(types="mail"), Filter(types=mail), Filter(states="scheduled"), Filter(queues="default")):
        assert await app.count(one) == 2
    assert await app.states(ids[0]) == {ids[0]: State.SCHEDULED}
    assert (await app.cancel_many(ids[0])).done == 1
    assert (await app.cancel_many(Filter(types="mai"))).requested == 0
    async with app.worker(queues="default", types="mail", tenants="default") as worker:
        await worker.idle()
    assert await app.count(Filter(states=State.COMPLETED)) == 1
    assert Redrive(types=mail) == Redrive(types=["mail"])
    async with App("memory://", jobs=mail) as single:
        assert single.registry.names() == ["mail"]


async def test_a_generator_is_read_once_and_kept(make_app: MakeApp) -> None:
    app = make_app(mail)
    await app.enqueue_many(mail() for _ in range(3))
    wanted = Filter(types=(name for name in ["mail"]), states=(each for each in ["scheduled"]))
    assert await app.count(wanted) == await app.count(wanted) == 3
    assert (await app.cancel_many(job.id for job in (await app.search(wanted)).jobs)).done == 3


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(InvalidInput, match=r"states='skeduled' must be 'pending', .*; did you mean 'scheduled'\?"):
        Filter(states=("skeduled",))
    with pytest.raises(InvalidInput, match=r"'piority' is no option of a job; did you mean 'priority'\?"):
        mail().using(piority=3)  # type: ignore[call-arg] # that is the point


# ── bounds ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_names_that_are_stored_are_bounded(make_app: MakeApp) -> None:
    app = make_app(mail)
    for call in (app.pause, app.once):
        with pytest.raises(LimitExceeded, match="has 257 characters, over name_chars_max=256"):
            await call("x" * 257)
        with pytest.raises(InvalidInput, match="contains a NUL character: leave it out"):
            await call("a\0b")
    assert await app.queues() == []


def test_settings_of_an_app_name_the_setting() -> None:
    with pytest.raises(InvalidInput, match="payload_bytes_max='1MB' must be a whole number"):
        Bounds(payload_bytes_max="1MB")  # type: ignore[arg-type] # that is the point
    with pytest.raises(DefinitionError, match="App: bounds='1MB' must be a Bounds, such as Bounds"):
        App("memory://", bounds="1MB")  # type: ignore[arg-type] # that is the point


async def test_an_update_needs_arguments_that_fit(make_app: MakeApp) -> None:
    app = make_app(mail)
    handle = await app.enqueue(mail(), delay=60)
    for wrong in ({"unknown": 1}, {"to": 3}, "x"):
        with pytest.raises(InvalidInput):
            await app.update(handle.id, arguments=wrong)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidInput, match="give at least one option"):
        await app.update(handle.id)


# ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_zone_may_be_an_object() -> None:
    oslo, after = ZoneInfo("Europe/Oslo"), datetime(2026, 1, 1, tzinfo=UTC)
    assert next_after("30 6 * * *", after, oslo) == next_after("30 6 * * *", after, "Europe/Oslo")
    assert next_after("30 6 * * *", after, UTC) == next_after("30 6 * * *", after)
    schedule("early", cron="30 6 * * *", timezone=oslo, job=mail())


async def test_a_zone_is_stored_by_its_name(make_app: MakeApp) -> None:
    app = make_app(mail)
    stored = await app.create_schedule("early", cron="30 6 * * *", timezone=ZoneInfo("Europe/Oslo"), job=mail())
    assert stored.timezone == "Europe/Oslo"


async def test_a_negative_delay_means_now(make_app: MakeApp) -> None:
    app = make_app(mail)
    for late in (-5, -0.1, LATE):
        assert (await (await app.enqueue(mail(), delay=late)).status()).state is State.SCHEDULED


@job(max_attempts=1)
async def naps(ctx: Context) -> str:
    await ctx.sleep(-1)
    return "awake"


async def test_a_negative_sleep_is_over_at_once(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app.running():
        assert await app.enqueue(naps()).result(timeout=5) == "awake"


async def test_a_deadline_in_the_past_is_accepted_and_expires(make_app: MakeApp) -> None:
    """Only the store's clock decides, and a repeated submission must find its job: so it is not refused."""
    app = make_app(mail)
    late = mail().using(deadline=datetime.now(UTC) + LATE)
    handle = await app.enqueue(late)
    assert (await app.why(handle.id)).cause == "expired"
    assert (await app.enqueue(late)).duplicate
    async with app.running():
        with pytest.raises(JobFailed, match="ended as dead_letter: deadline exceeded"):
            await handle.result(timeout=5)
    assert (await handle.status()).attempt == 0
