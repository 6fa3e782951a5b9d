"""Jobs of types that their app does not know: one warning a type, a refusal where the app is strict, and nothing for an
app that is only a client."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from ropewalk import (
    App,
    Context,
    DefinitionError,
    Job,
    JobFailed,
    Result,
    UnknownJobType,
    UnregisteredJobType,
    job,
    schedule,
)
from ropewalk.testing import Rehearsal
from tests.apps import MakeApp
from tests.runners import handlers


@job
async def known(n: int) -> int:
    return n


@job
async def stranger(n: int) -> int:
    return n


@job
async def undo(n: int) -> None: ...


@job(max_attempts=1, on_failure=undo)
async def undoable(n: int) -> None: ...


@job(max_attempts=1)
async def spawns(ctx: Context) -> None:
    await ctx.spawn_many([stranger(1), stranger(2)])


@job(max_attempts=1)
async def queues(ctx: Context) -> Result[None, int]:
    return ctx.queue(known(1)).next(stranger(2))


@job(max_attempts=1)
async def goes_on(ctx: Context) -> Result[int, int]:
    return ctx.continue_with(stranger(1))


@job(max_attempts=1)
def spawns_in_a_thread(ctx: Context) -> None:
    ctx.sync.spawn(stranger(1))


ALL = (known, spawns, queues, goes_on, spawns_in_a_thread, handlers.spawns_one, handlers.continues)

Call = Callable[[App], Awaitable[object]]


async def sync_enqueue(app: App) -> None:
    app.sync.enqueue(stranger(1))


CALLS: dict[str, Call] = {
    "enqueue": lambda app: app.enqueue(stranger(1)),
    "enqueue_many": lambda app: app.enqueue_many([known(1), stranger(1)]),
    "in chunks": lambda app: app.enqueue_many([known(1), stranger(1)], atomic=False),
    "dependants": lambda app: app.enqueue(stranger(1).using(depends_on="none", allow_missing=True)),
    "the blocking face": sync_enqueue,
    "another tenant": lambda app: app.tenant("acme").enqueue(stranger(1)),
    "a schedule": lambda app: app.create_schedule("pulse", every=60, job=stranger(1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_one_warning_for_a_type(make_app: MakeApp, call: Call) -> None:
    app = make_app(known)
    told = r"the job type 'stranger' is not registered with this app.* add it to App\(jobs=\[\.\.\.\]\)"
    with pytest.warns(UnregisteredJobType, match=told) as heard:
        await call(app)
        await app.enqueue(stranger(2))
    assert [(each.category, each.filename) for each in heard] == [(UnregisteredJobType, __file__)]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_strict_app_refuses_before_anything_is_written(make_app: MakeApp, call: Call) -> None:
    app = make_app(known, strict=True)
    told = r"no job type named 'stranger' is registered here.* Registered: known\. Add it to App\(jobs=\[\.\.\.\]\)"
    with pytest.raises(UnknownJobType, match=told):
        await call(app)
    assert await app.count() == 0 and await app.schedules() == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("jobs", "strict"), [((), None), ((), False), ((known,), False)])
async def test_a_client_enqueues_for_other_services(
    make_app: MakeApp, call: Call, jobs: tuple[Any, ...], strict: bool | None
) -> None:
    app = make_app(*jobs, strict=strict)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await call(app)
        await app.enqueue(undoable(1))
        await app.enqueue(stranger(3), on_failure=undo)
    assert (await app.enqueue(stranger(1))).id


# ── what handlers enqueue ───────────────────────────────────────────────────────────────────────────────────────────

INSIDE = (spawns, queues, goes_on, spawns_in_a_thread, handlers.spawns_one, handlers.continues)


@pytest.mark.parametrize("of_type", INSIDE, ids=[each.name for each in INSIDE])
async def test_handlers_are_warned(make_app: MakeApp, of_type: Any) -> None:
    """Those in processes of their own do not know the app: their worker looks at what they want to follow."""
    app = make_app(*ALL)
    with pytest.warns(UnregisteredJobType, match="not registered with this app") as heard:
        async with app.running():
            handle = await app.enqueue(of_type())
            await app.wait(handle.id, timeout=20)
    assert len(heard) == 1


@pytest.mark.parametrize("of_type", INSIDE, ids=[each.name for each in INSIDE])
async def test_handlers_of_a_strict_app_are_refused(make_app: MakeApp, of_type: Any) -> None:
    app = make_app(*ALL, strict=True)
    async with app.running():
        handle = await app.enqueue(of_type().using(max_attempts=1))
        with pytest.raises(JobFailed, match="UnknownJobType no job type named"):
            await handle.result(timeout=20)
    assert await app.count() == 1, "nothing of it was written"


async def test_a_worker_of_a_few_types_knows_all_of_its_app(make_app: MakeApp) -> None:
    app = make_app(*ALL, stranger, strict=True)
    async with app.worker(types=queues) as worker:
        handle = await app.enqueue(queues())
        await worker.idle()
    assert (await handle.status()).state == "completed"


# ── compensations ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strict", [None, True])
async def test_a_compensation_that_nobody_runs(make_app: MakeApp, strict: bool | None) -> None:
    told = r"undoable: on_failure=undo is not registered with this app.* add it to App\(jobs=\[\.\.\.\]\)"
    with pytest.raises(DefinitionError, match=told):
        App("memory://", jobs=undoable, strict=strict)
    app = make_app(known, strict=strict)
    for wanted in (undo, undo(1), known(1).using(on_failure=undo(1))):
        with pytest.raises(DefinitionError, match="known: on_failure=undo is not registered"):
            await app.enqueue(known(1), on_failure=wanted)
        with pytest.raises(DefinitionError, match="known: on_failure=undo is not registered"):
            make_app(known, strict=strict, schedules=schedule("s", every=60, job=known(1).using(on_failure=wanted)))
    assert await app.count() == 0
    make_app(undoable, undo, strict=strict)
    make_app(undoable, strict=False)


# ── schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────


def run_stranger(_at: datetime) -> Job[Any, Any]:
    return stranger(1)


async def test_a_declared_schedule(make_app: MakeApp) -> None:
    declared = schedule("pulse", every=60, job=stranger(1))
    with pytest.warns(UnregisteredJobType, match="'stranger'"):
        make_app(known, schedules=declared)
    with pytest.raises(DefinitionError, match=r"schedule 'pulse': no job type named 'stranger' is registered here"):
        make_app(known, schedules=declared, strict=True)
    app = make_app(known, strict=True)
    with pytest.raises(DefinitionError, match="schedule 'pulse'"):
        app.schedule("pulse", every=60, job=stranger(1))
    assert app.declared == ()


async def test_a_function_of_a_schedule() -> None:
    declared = schedule("pulse", every=60, run=run_stranger)
    rehearsal = Rehearsal(App("memory://", jobs=known, schedules=declared))
    with pytest.warns(UnregisteredJobType, match="'stranger'"):
        await rehearsal.drain()
        await rehearsal.advance(seconds=60)
        await rehearsal.drain()
    assert len(await rehearsal.enqueued(stranger)) == 1


async def test_a_rehearsal_is_as_strict_as_its_app() -> None:
    rehearsal = Rehearsal(App("memory://", jobs=known, strict=True))
    with pytest.raises(UnknownJobType):
        await rehearsal.enqueue(stranger(1))
    assert rehearsal.records() == []
