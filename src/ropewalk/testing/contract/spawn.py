"""Children that a running attempt spawns."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State
from ropewalk.errors import LeaseLost, SpawnMismatch
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import new_job


@needs(WORKFLOWS)
class SpawnContract(Contract):
    """A running attempt spawns each child once, by its spawn key (R10)."""

    async def test_a_child_is_written_under_its_parents_lease(self, bench: Bench) -> None:
        parent = await bench.running()
        [child] = await bench.submit(_child(parent, "k"), under=holder(parent))
        assert not child.duplicate
        assert (await bench.job(child.id)).parent_id == parent.id

    async def test_the_same_spawn_again_finds_the_child(self, bench: Bench) -> None:
        """A retry never doubles its children, whatever became of them."""
        parent = await bench.running()
        [child] = await bench.submit(_child(parent, "k"), under=holder(parent))
        [again] = await bench.submit(_child(parent, "k"), under=holder(parent))
        assert (again.duplicate, again.id) == (True, child.id)
        await bench.settle(await bench.claim_one())
        [after] = await bench.submit(_child(parent, "k"), under=holder(parent))
        assert (after.duplicate, after.id, after.state) == (True, child.id, State.COMPLETED)

    async def test_a_deleted_child_can_be_spawned_again(self, bench: Bench) -> None:
        parent = await bench.running()
        [child] = await bench.submit(_child(parent, "k"), under=holder(parent))
        await bench.settle(await bench.claim_one())
        await bench.store.delete("default", [child.id])
        [again] = await bench.submit(_child(parent, "k"), under=holder(parent))
        assert not again.duplicate

    async def test_spawns_with_other_keys_or_parents_are_other_children(self, bench: Bench) -> None:
        one = await bench.running()
        two = await bench.running()
        ids = {
            (await bench.submit(_child(parent, key), under=holder(parent)))[0].id
            for parent in (one, two)
            for key in ("k", "l")
        }
        assert len(ids) == 4

    @pytest.mark.parametrize("change", [{"type": "b"}, {"input": b"[2]"}])
    async def test_a_spawn_key_with_other_content_is_a_mismatch(self, bench: Bench, change: dict[str, object]) -> None:
        parent = await bench.running()
        await bench.submit(_child(parent, "k"), under=holder(parent))
        answer = await bench.answer(
            _child(parent, "fine"), structs.replace(_child(parent, "k"), **change), under=holder(parent)
        )
        assert isinstance(answer, SpawnMismatch)
        assert len(await bench.claim(5)) == 1, "its neighbour is not written either"

    async def test_a_spawn_key_repeated_in_one_submission_is_one_child(self, bench: Bench) -> None:
        parent = await bench.running()
        first, second = await bench.submit(_child(parent, "k"), _child(parent, "k"), under=holder(parent))
        assert (second.duplicate, second.id) == (True, first.id)

    async def test_a_stale_lease_spawns_nothing(self, bench: Bench) -> None:
        """safe-5: by another fence, another owner, after the end, and for a job that is not there."""
        parent = await bench.running()
        lease = holder(parent)
        for stale in (structs.replace(lease, fence=lease.fence + 1), structs.replace(lease, owner="other")):
            answer = await bench.answer(_child(parent, "k"), under=stale)
            assert isinstance(answer, LeaseLost)
            assert answer.reason == "taken_by_another_worker"
        await bench.settle(parent)
        after = await bench.answer(_child(parent, "k"), under=lease)
        assert isinstance(after, LeaseLost)
        assert after.reason == "already_completed"
        missing = await bench.answer(_child(parent, "k"), under=structs.replace(lease, seq=10**9))
        assert isinstance(missing, LeaseLost)
        assert missing.reason == "not_found"
        assert await bench.claim(5) == []


def _child(parent: JobRecord, key: str) -> NewJob:
    return new_job("a", parent_id=parent.id, spawn_key=key, group_id=parent.group_id or parent.id)
