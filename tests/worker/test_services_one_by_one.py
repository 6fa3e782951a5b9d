"""One member that makes a batch fail holds up none of the others, in any service of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ropewalk import Context, Result, StoreUnavailable, job
from ropewalk.domain.time import SECOND
from ropewalk.worker.services import orphan_groups
from ropewalk.worker.services.one_by_one import together_or_alone
from ropewalk.worker.services.orphan_groups import OrphanGroup, OrphansConfig
from tests.apps import MakeApp, on_embedded_stores
from tests.client.schedules import Clock, report
from tests.worker.faults import Faults

DEFECT = RuntimeError("a defect")


@on_embedded_stores
async def test_a_schedule_that_cannot_be_changed_keeps_no_other_from_firing(make_app: MakeApp) -> None:
    clock = Clock(make_app)
    app = clock.app
    async with app.running():
        for name in ("before", "broken", "behind"):
            await app.create_schedule(name, every=10, job=report(name))
        Faults(app).fail_for("change_schedules", "'broken'", DEFECT)
        await clock.pass_by(seconds=25)
        made = [info.result for info in await clock.jobs()]
    assert sorted(made, key=str) == ["before reported"] * 2 + ["behind reported"] * 2
    assert clock.told == [("schedule broken", "a defect")], "it is left alone for a while"


@job
async def leaf(number: int) -> int:
    return number


@job
async def tree(ctx: Context, number: int) -> Result[None, int]:
    return ctx.queue(leaf(number))


async def test_a_group_that_cannot_be_described_keeps_no_other_from_being_told(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = OrphansConfig(every_seconds=0.02, hide_us=60 * SECOND)
    monkeypatch.setattr(orphan_groups, "OrphansConfig", lambda: quick)
    heard: asyncio.Queue[OrphanGroup] = asyncio.Queue()
    told: list[str] = []
    app = make_app(leaf, tree, on_orphan_group=heard.put, on_error=lambda _, phase: told.append(phase))
    async with app:
        roots = [await app.enqueue(tree(number)) for number in range(3)]
        async with app.worker(grace=0) as worker:
            Faults(app).fail_for("groups", roots[0].id, DEFECT)
            await worker.idle()
            groups = [(await asyncio.wait_for(heard.get(), 10)).group_id for _ in roots[1:]]
    assert set(groups) == {root.id for root in roots[1:]}
    assert f"orphan group {roots[0].id}" in told


async def test_an_absent_store_is_no_fault_of_a_member() -> None:
    failed: list[int] = []

    async def away(members: Sequence[int]) -> None:
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await together_or_alone([1, 2], away, lambda member, _: failed.append(member))
    assert failed == []
