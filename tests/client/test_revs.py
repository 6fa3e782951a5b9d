"""Changes that are made only if nobody else has changed the job or the schedule since it was read."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ropewalk import Conflict, InvalidInput, NotFound, RevMismatch, job
from tests.apps import MakeApp, on_embedded_stores
from tests.client.schedules import Clock, report


@job
async def plain(number: int = 0) -> int:
    return number


async def test_an_update_is_made_in_the_rev_that_was_read(make_app: MakeApp) -> None:
    app = make_app(plain)
    handle = await app.enqueue(plain(1), delay=3600)
    read = await app.get(handle.id)
    changed = await app.update(handle.id, priority=5, if_rev=read.rev)
    assert (changed.rev, changed.priority) == (read.rev + 1, 5)
    with pytest.raises(RevMismatch, match=r"has rev 2, not if_rev=1: it has changed; read it again") as stale:
        await app.update(handle.id, arguments={"number": 9}, if_rev=read.rev)
    assert (stale.value.expected, stale.value.current) == (1, 2)
    after = await app.get(handle.id)
    assert (after.rev, after.arguments) == (2, {"number": 1})
    assert app.sync.update(handle.id, priority=6, if_rev=2).rev == 3


async def test_of_those_who_read_the_same_one_changes_it(make_app: MakeApp) -> None:
    app = make_app(plain)
    handle = await app.enqueue(plain(1), delay=3600)
    answers = await asyncio.gather(
        *(app.update(handle.id, priority=priority, if_rev=1) for priority in range(1, 9)), return_exceptions=True
    )
    assert [type(each) for each in answers].count(RevMismatch) == len(answers) - 1
    assert (await app.get(handle.id)).rev == 2


async def test_other_refusals_come_first(make_app: MakeApp) -> None:
    app = make_app(plain)
    handle = await app.enqueue(plain(1))
    await handle.cancel()
    with pytest.raises(Conflict, match="is cancelled: only a waiting job can be updated") as refused:
        await app.update(handle.id, priority=1, if_rev=99)
    assert not isinstance(refused.value, RevMismatch)
    with pytest.raises(NotFound):
        await app.update("nope", priority=1, if_rev=1)
    for wrong in (0, True, "1"):
        with pytest.raises(InvalidInput, match="if_rev="):
            await app.update(handle.id, priority=1, if_rev=wrong)  # type: ignore[arg-type]


async def test_a_schedule_is_edited_in_the_version_that_was_read(make_app: MakeApp) -> None:
    app = make_app(report)
    created = await app.create_schedule("s", every=3600, job=report())
    assert created == await app.get_schedule("s")
    edited = await app.edit_schedule("s", missed="all", if_rev=created.version)
    assert edited == await app.get_schedule("s")
    assert edited.version != created.version
    with pytest.raises(RevMismatch, match="schedule 's' has version") as stale:
        await app.edit_schedule("s", missed="once", if_rev=created.version)
    assert (stale.value.expected, stale.value.current) == (created.version, edited.version)
    assert (await app.get_schedule("s")).missed == "all"
    [listed] = await app.schedules()
    assert listed.version == edited.version
    with pytest.raises(NotFound):
        await app.edit_schedule("other", missed="once", if_rev=1)
    with pytest.raises(InvalidInput, match="if_rev=0"):
        await app.edit_schedule("s", missed="once", if_rev=0)


async def test_a_preview_looks_at_the_version_too(make_app: MakeApp) -> None:
    app = make_app(report)
    assert (await app.create_schedule("s", every=3600, job=report(), dry_run=True)).version is None
    created = await app.create_schedule("s", every=3600, job=report())
    preview = await app.edit_schedule("s", missed="all", if_rev=created.version, dry_run=True)
    assert (preview.missed, preview.version) == ("all", created.version)
    paused = await app.pause_schedule("s")
    with pytest.raises(RevMismatch):
        await app.edit_schedule("s", missed="all", if_rev=created.version, dry_run=True)
    assert (await app.edit_schedule("s", missed="all", if_rev=paused.version)).paused


async def test_of_those_who_read_the_same_schedule_one_edits_it(make_app: MakeApp) -> None:
    app = make_app(report)
    created = await app.create_schedule("s", every=3600, job=report())
    answers = await asyncio.gather(
        *(app.edit_schedule("s", every=seconds, if_rev=created.version) for seconds in range(100, 106)),
        return_exceptions=True,
    )
    assert [type(each) for each in answers].count(RevMismatch) == len(answers) - 1
    assert (await app.get_schedule("s")).generation == 2


@on_embedded_stores
async def test_a_fire_is_a_change(make_app: MakeApp) -> None:
    clock = Clock(make_app)
    async with clock.app as app:
        created = await app.create_schedule("s", every=60, job=report())
    await clock.pass_by(seconds=61)
    await clock.work()
    async with clock.app as app:
        assert await app.count() == 1
        with pytest.raises(RevMismatch):
            await app.edit_schedule("s", every=timedelta(minutes=2), if_rev=created.version)
