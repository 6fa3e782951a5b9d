"""O6: what is counted, how it is shown, and that it stays bounded."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from msgspec import json
from prometheus_client.parser import text_string_to_metric_families

from ropewalk import Abort, App, Backoff, Context, Defer, Registry, Retry, job
from ropewalk.domain.time import SECOND
from ropewalk.errors import StoreUnavailable
from ropewalk.observe.metrics import catalogue
from ropewalk.observe.metrics.catalogue import ALL
from ropewalk.observe.metrics.metrics import exposition
from ropewalk.observe.metrics.values import OTHER, SERIES_MAX, MetricValues, counted
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.testing import Rehearsal
from tests.apps import MakeApp

Samples = dict[str, dict[tuple[str, ...], float]]

let_go = threading.Event()


@job
async def fine(n: int = 0) -> int:
    return n


@job(max_attempts=2, backoff=Backoff.constant(0))
async def broken() -> None:
    raise ValueError("broken")


@job
async def aborted() -> None:
    raise Abort("no")


@job(on_failure=fine)
async def compensated() -> None:
    raise Abort("no")


@job
async def again(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise Retry(after=0)
    return ctx.attempt


@job
async def later(ctx: Context) -> None:
    if await ctx.once("later"):
        raise Defer(delay=0)


@job
async def family(ctx: Context) -> None:
    await ctx.spawn(fine())


@job
async def blocks() -> None:
    let_go.wait(0.3)


async def read(app: App) -> Samples:
    """Samples by name and label values, as the official parser reads them."""
    found: Samples = {}
    for each in text_string_to_metric_families(await app.metrics.text()):
        for sample in each.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def rehearsal(*jobs: Any, **options: Any) -> Rehearsal:
    return Rehearsal(App("memory://", jobs=jobs, **options))


async def test_what_becomes_of_jobs_is_counted_by_type() -> None:
    """O6"""
    app = rehearsal(fine, broken, aborted, compensated, again, later, family)
    await app.enqueue_many([fine(1), fine(2), fine(3)])
    for each in (broken(), aborted(), compensated(), again(), later(), family()):
        await app.enqueue(each)
    await app.enqueue(fine(4), delay=60, id="late")
    await app.enqueue(fine(4), id="late")  # a duplicate
    await app.enqueue(fine(5), delay=60, ttl=30)
    await app.drain()
    await app.cancel("late")
    await app.advance(seconds=60)
    await app.drain()
    seen = await read(app)
    assert seen["ropewalk_jobs_enqueued_total"] == {
        ("fine",): 7,  # three, late, expired, compensating, spawned
        **dict.fromkeys([("broken",), ("aborted",), ("compensated",), ("again",), ("later",), ("family",)], 1),
    }
    assert seen["ropewalk_jobs_completed_total"] == {("fine",): 5, ("again",): 1, ("later",): 1, ("family",): 1}
    assert seen["ropewalk_jobs_started_total"][("broken",)] == 2
    assert seen["ropewalk_jobs_retried_total"] == {("broken",): 1, ("again",): 1}
    assert seen["ropewalk_jobs_dead_lettered_total"] == {("broken",): 1}
    assert seen["ropewalk_jobs_failed_total"] == {("aborted",): 1, ("compensated",): 1}
    assert seen["ropewalk_jobs_cancelled_total"] == {("fine",): 1}
    assert seen["ropewalk_jobs_expired_total"] == {("fine",): 1}
    assert seen["ropewalk_jobs_given_back_total"] == {("later", "deferred"): 1}
    assert seen["ropewalk_job_attempts_sum"][("again",)] == 2
    assert seen["ropewalk_job_attempts_count"][("broken",)] == 1
    assert seen["ropewalk_job_run_seconds_count"][("broken",)] == 2
    assert seen["ropewalk_settle_batch_jobs_sum"][()] == 14


async def test_times_are_of_the_stores_clock() -> None:
    """O6: waiting, and the whole life."""
    app = rehearsal(fine)
    await app.enqueue(fine(), delay=10)
    await app.advance(seconds=14)
    await app.drain()
    seen = await read(app)
    assert seen["ropewalk_job_wait_seconds_sum"][("fine",)] == pytest.approx(4.0, abs=0.1)
    assert seen["ropewalk_job_total_seconds_sum"][("fine",)] == pytest.approx(14.0, abs=0.1)
    assert seen["ropewalk_job_wait_seconds_bucket"][("fine", "2.5")] == 0
    assert seen["ropewalk_job_wait_seconds_bucket"][("fine", "5")] == 1


async def test_what_waits_in_the_store_is_a_gauge(make_app: MakeApp) -> None:
    """O6: by queue, of all tenants; and types nobody here knows."""
    app = make_app(fine, broken)
    async with app:
        await app.enqueue(fine(), queue="mail")
        await app.tenant("acme").enqueue(fine(), queue="mail")
        await app.enqueue(fine(), delay=60)
        await app.enqueue(broken())
        assert (await read(app))["ropewalk_queue_ready_jobs"] == {("mail",): 2, ("default",): 1}
        known = app._app_state.registry
        app._app_state.registry = Registry(fine)
        app.metrics._next_look = float("-inf")
        seen = await read(app)
        app._app_state.registry = known
    assert seen["ropewalk_unregistered_ready_jobs"] == {("broken",): 1}
    assert 0 <= seen["ropewalk_queue_oldest_ready_seconds"][("mail",)] < 60


async def test_a_scrape_does_not_wear_the_store_out() -> None:
    """O6: looked at once a second at most, and less often when a look takes long."""
    app = rehearsal(fine)
    await app.enqueue(fine())
    assert (await read(app))["ropewalk_queue_ready_jobs"] == {("default",): 1}
    await app.enqueue(fine())
    assert (await read(app))["ropewalk_queue_ready_jobs"] == {("default",): 1}
    await app.advance(seconds=1.1)
    assert (await read(app))["ropewalk_queue_ready_jobs"] == {("default",): 2}


async def test_a_store_that_is_away_does_not_hide_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    app = rehearsal(fine, on_error=lambda _, phase: reported.append(phase))
    await app.run(fine())

    async def away() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(app._app_state.store, "backlog", away)
    seen = await read(app)
    assert seen["ropewalk_jobs_completed_total"] == {("fine",): 1}
    assert "ropewalk_queue_ready_jobs" not in seen
    assert reported == ["metrics"]
    assert seen["ropewalk_errors_total"] == {("metrics",): 1}


async def test_swallowed_errors_and_restarts_are_counted(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1, guarantees rule 4: a loop that fails is a metric."""
    told = asyncio.Event()

    def hook(event: object) -> None:
        raise RuntimeError("hook")

    app = make_app(fine, on_event=hook, on_error=lambda _, phase: told.set() if phase == "claimer" else None)
    async with app:
        claim = app._app_state.store.claim

        async def fail_once(*args: Any) -> object:
            monkeypatch.setattr(app._app_state.store, "claim", claim)
            raise StoreUnavailable("away")

        monkeypatch.setattr(app._app_state.store, "claim", fail_once)
        async with app.worker():
            await asyncio.wait_for(told.wait(), 10)
            assert await app.enqueue(fine(1)).result(timeout=10) == 1
        seen = await read(app)
    assert seen["ropewalk_loop_restarts_total"] == {("claimer",): 1}
    assert seen["ropewalk_errors_total"][("on_event",)] == 3  # queued, started, succeeded


async def test_a_blocked_loop_shows() -> None:
    """O6: loop lag, seen from the heartbeat's thread."""
    let_go.clear()
    app = App("memory://", jobs=[blocks])
    async with app.running():
        await app.enqueue(blocks()).result(timeout=10)
        lag = 0.0
        async with asyncio.timeout(20):
            while lag < 0.1:
                await app.enqueue(blocks()).result(timeout=10)
                lag = (await read(app)).get("ropewalk_loop_lag_seconds_sum", {}).get((), 0.0)


async def test_what_a_dead_worker_held_is_counted() -> None:
    """O6: attempts that were lost, by type; and how many jobs each claim brought."""
    app = rehearsal(fine)
    await app.enqueue_many([fine(1), fine(2)])
    await app._app_state.store.claim(
        ClaimRequest(
            owner="dead",
            types={"fine": 10 * SECOND},
            slots=1,
            limit=1,
            first_ticket=1,
            started_upto=1,
        )
    )
    await app.advance(seconds=11)
    await app.drain()
    seen = await read(app)
    assert seen["ropewalk_jobs_reclaimed_total"] == {("fine",): 1}
    assert seen["ropewalk_jobs_completed_total"] == {("fine",): 2}
    assert seen["ropewalk_claim_batch_jobs_sum"][()] == 2


async def test_renewals_and_late_writes(make_app: MakeApp) -> None:
    """O6: leases renewed, and writes that came too late."""
    app = make_app(fine)
    meter = app._app_state.events.meter
    assert meter is not None
    meter.renewed(3)
    meter.refused()
    async with app:
        seen = await read(app)
    assert seen["ropewalk_lease_renewals_total"] == {(): 3}
    assert seen["ropewalk_stale_writes_total"] == {(): 1}


def test_blocking_code_has_them_too() -> None:
    app = App("memory://", jobs=[fine])
    app.sync.enqueue(fine())
    assert 'ropewalk_jobs_enqueued_total{type="fine"} 1\n' in app.sync.metrics.text()
    assert len(app.sync.metrics.snapshot()) == len(ALL)


async def test_switched_off_nothing_is_counted() -> None:
    app = rehearsal(fine, metrics=False)
    await app.run(fine())
    await app.enqueue(fine())
    assert await read(app) == {
        "ropewalk_queue_ready_jobs": {("default",): 1},
        "ropewalk_queue_oldest_ready_seconds": {("default",): 0},
    }


async def test_the_snapshot_is_data() -> None:
    app = rehearsal(fine)
    await app.run(fine())
    families = {each.name: each for each in await app.metrics.snapshot()}
    assert set(families) == {metric.name for metric in ALL}
    [sample] = families["ropewalk_job_run_seconds"].samples
    assert sample.labels == {"type": "fine"} and sample.histogram is not None and sample.histogram.count == 1
    assert json.decode(json.encode(list(families.values())))


def test_names_follow_the_conventions() -> None:
    for metric in ALL:
        assert metric.name.startswith("ropewalk_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert bool(metric.buckets) == (metric.kind == "histogram")
        assert list(metric.buckets) == sorted(metric.buckets)


def test_hostile_names_are_escaped() -> None:
    numbers = MetricValues()
    name = 'a"b\\c\nd{}#é'
    numbers.add(catalogue.COMPLETED, (name,), 1)
    [sample] = [
        sample for family in text_string_to_metric_families(exposition(numbers.collect())) for sample in family.samples
    ]
    assert sample.labels == {"type": name}


def test_cardinality_is_bounded() -> None:
    """O6: names from outside cannot fill the memory."""
    numbers = MetricValues()
    for number in range(SERIES_MAX + 50):
        numbers.add(catalogue.COMPLETED, (f"type-{number}",), 1)
        numbers.observe(catalogue.RUN, (f"type-{number}",), [1.0])
    families = {each.name: each for each in numbers.collect()}
    for metric in (catalogue.COMPLETED, catalogue.RUN):
        samples = families[metric.name].samples
        assert len(samples) == SERIES_MAX + 1
        [rest] = [each for each in samples if each.labels["type"] == OTHER]
        assert (rest.value if rest.histogram is None else rest.histogram.count) == 50


@pytest.mark.parametrize("values", [[1], [0, 1, 1, 2, 3, 10, 11], [11, 12], [3, 3, 10]])
def test_every_value_is_in_the_bucket_of_the_least_bound_that_holds_it(values: list[int]) -> None:
    bounds = (1, 3, 10)
    expected = {at: sum(at == sum(value > bound for bound in bounds) for value in values) for at in range(4)}
    assert dict.fromkeys(range(4), 0) | dict(counted(list(values), bounds)) == expected


def test_threads_lose_no_count() -> None:
    numbers = MetricValues()

    def work() -> None:
        for _ in range(5_000):
            numbers.add(catalogue.COMPLETED, ("t",), 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    [family] = [each for each in numbers.collect() if each.samples]
    assert family.samples[0].value == 20_000
