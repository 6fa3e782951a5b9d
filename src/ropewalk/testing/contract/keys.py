"""Idempotency keys."""

from __future__ import annotations

import asyncio

from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus, UpdateRequest
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.errors import Conflict
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import keyed, new_job


class KeyContract(Contract):
    """An idempotency key names at most one job in its scope (safe-12)."""

    async def test_an_open_job_with_the_key_is_found_instead_of_a_new_one(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k"))
        [again] = await bench.submit(keyed("k"))
        assert (again.duplicate, again.id, again.state) == (True, first.id, State.SCHEDULED)
        job = await bench.job(first.id)
        assert job.idempotency_key == "k"
        await bench.claim_one()
        [running] = await bench.submit(keyed("k"))
        assert (running.duplicate, running.id, running.state) == (True, first.id, State.RUNNING)

    async def test_the_answer_tells_when_and_in_which_group_it_runs(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k", delay_us=HOUR, group_id="g"))
        [again] = await bench.submit(keyed("k"))
        assert (again.run_at, again.group_id, again.state) == (first.run_at, "g", State.DELAYED)

    async def test_the_scope_open_ends_with_the_job(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"))
        [second] = await bench.submit(keyed("k"))
        assert not second.duplicate
        assert second.id != first

    async def test_every_kind_of_end_closes_the_key(self, bench: Bench) -> None:
        for move in (Move.COMPLETE, Move.FAIL, Move.BURY, Move.EXPIRE, Move.CANCEL):
            await _finish(bench, keyed("k"), move)
        [waiting] = await bench.submit(keyed("k"))
        await bench.store.cancel("default", [waiting.id], reason=None, force=False)
        [overdue] = await bench.submit(keyed("k", ttl_us=SECOND))
        assert not overdue.duplicate
        await bench.runtime.advance(1)
        await bench.sweep(9)
        [lost] = await bench.submit(keyed("k", max_crashes=1))
        assert not lost.duplicate
        await bench.claim_one()
        await bench.runtime.advance(60)
        await bench.sweep(9)
        [last] = await bench.submit(keyed("k"))
        assert not last.duplicate

    async def test_a_job_that_waits_again_keeps_its_key(self, bench: Bench) -> None:
        await bench.submit(keyed("k"))
        for move in (Move.RETRY, Move.DEFER, Move.RELEASE):
            await bench.settle(await bench.claim_one(), move)
            [again] = await bench.submit(keyed("k"))
            assert again.duplicate

    async def test_the_scope_any_also_finds_a_finished_job_within_the_window(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"))
        await bench.runtime.advance(hours=23)
        [again] = await bench.submit(keyed("k", scope="any"))
        assert (again.duplicate, again.id, again.state) == (True, first, State.COMPLETED)

    async def test_the_window_of_the_new_call_counts_from_the_opening_of_the_key(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"))
        await bench.runtime.advance(59.999_999)
        [inside] = await bench.submit(keyed("k", scope="any", window=60))
        assert (inside.duplicate, inside.id) == (True, first)
        await bench.runtime.advance(0.000_001)
        [outside] = await bench.submit(keyed("k", scope="any", window=60))
        assert not outside.duplicate

    async def test_an_open_job_is_found_by_its_key_however_old_it_is(self, bench: Bench) -> None:
        await bench.submit(keyed("k"))
        await bench.runtime.advance(days=30)
        [again] = await bench.submit(keyed("k", scope="any", window=1))
        assert again.duplicate

    async def test_the_scope_of_the_new_call_decides(self, bench: Bench) -> None:
        """safe-12: the scope with which the key was opened does not matter."""
        await _finish(bench, keyed("k", scope="any"))
        [fresh] = await bench.submit(keyed("k", scope="open"))
        assert not fresh.duplicate

    async def test_the_same_key_with_another_input_is_a_conflict(self, bench: Bench) -> None:
        await bench.submit(keyed("k", input=b"[1]"))
        answer = await bench.answer(new_job(id="neighbour"), keyed("k", input=b"[2]"))
        assert isinstance(answer, Conflict)
        assert "'k'" in str(answer)
        assert await bench.find("neighbour") is None

    async def test_another_input_conflicts_with_a_finished_job_within_the_window(self, bench: Bench) -> None:
        await _finish(bench, keyed("k", input=b"[1]"))
        assert isinstance(await bench.answer(keyed("k", input=b"[2]", scope="any")), Conflict)
        [fresh] = await bench.submit(keyed("k", input=b"[2]"))
        assert not fresh.duplicate

    async def test_keys_belong_to_tenant_and_type(self, bench: Bench) -> None:
        """safe-15."""
        accepted = [
            (await bench.submit(keyed("k", type=job_type, tenant=tenant)))[0]
            for job_type in ("a", "b")
            for tenant in ("acme", "zeta")
        ]
        assert [each.duplicate for each in accepted] == [False] * 4

    async def test_a_key_repeated_inside_one_batch_is_one_job(self, bench: Bench) -> None:
        first, other, again = await bench.submit(keyed("k"), keyed("l"), keyed("k"))
        assert (first.duplicate, other.duplicate, again.duplicate) == (False, False, True)
        assert again.id == first.id
        assert len(await bench.claim(9)) == 2

    async def test_a_key_with_two_inputs_inside_one_batch_is_a_conflict(self, bench: Bench) -> None:
        """safe-3: and the key is free afterwards."""
        answer = await bench.answer(keyed("k", input=b"[1]"), keyed("k", input=b"[2]"))
        assert isinstance(answer, Conflict)
        [accepted] = await bench.submit(keyed("k", input=b"[3]"))
        assert not accepted.duplicate

    async def test_a_refused_submission_opens_no_key(self, bench: Bench) -> None:
        """S4: rolled-back winners included."""
        await bench.submit(new_job(id="taken", input=b"[1]"))
        answer = await bench.answer(keyed("k"), new_job(id="taken", input=b"[2]"))
        assert isinstance(answer, Conflict)
        [accepted] = await bench.submit(keyed("k", input=b"[other]"))
        assert not accepted.duplicate

    async def test_the_same_id_is_looked_at_before_the_key(self, bench: Bench) -> None:
        """safe-17: repeating a call with the same id finds the job, whatever became of its key."""
        new = keyed("k")
        await _finish(bench, new)
        await bench.submit(keyed("k"))
        [again] = await bench.submit(new)
        assert (again.duplicate, again.id, again.state) == (True, new.id, State.COMPLETED)

    async def test_concurrent_callers_of_one_key_get_one_job(self, bench: Bench) -> None:
        other = await bench.second()
        answers = await asyncio.gather(*(each.submit(keyed("k")) for each in (bench, other) * 10))
        assert len({accepted.id for [accepted] in answers}) == 1
        assert sum(not accepted.duplicate for [accepted] in answers) == 1


class KeyRetryContract(Contract):
    """A job that is retried by hand holds its idempotency key again, unless another open job holds it (safe-12)."""

    async def test_a_retried_job_holds_its_key_again(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"), Move.FAIL)
        await _retry(bench, first)
        [again] = await bench.submit(keyed("k"))
        assert (again.duplicate, again.id) == (True, first)

    async def test_the_window_of_a_retried_job_counts_from_the_first_opening(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"), Move.FAIL)
        await bench.runtime.advance(50)
        await _retry(bench, first)
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(10)
        [again] = await bench.submit(keyed("k", scope="any", window=60))
        assert not again.duplicate

    async def test_a_key_held_by_another_open_job_refuses_the_retry(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"), Move.FAIL)
        before = await bench.stored_history(first)
        await bench.submit(keyed("k"))
        [refused] = await bench.store.retry("default", [first], RetryRequest())
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, "key_in_use")
        assert refused.state is State.FAILED
        assert await bench.stored_history(first) == before

    async def test_a_retried_job_gets_its_key_back_when_a_later_holder_has_ended(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"), Move.FAIL)
        await _finish(bench, keyed("k"))
        await _retry(bench, first)
        [again] = await bench.submit(keyed("k"))
        assert (again.duplicate, again.id) == (True, first)

    async def test_of_two_finished_jobs_with_one_key_only_one_can_be_retried(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"), Move.FAIL)
        second = await _finish(bench, keyed("k"), Move.FAIL)
        one, two = await bench.store.retry("default", [first, second], RetryRequest())
        assert (one.status, two.status) == (RetryStatus.QUEUED, RetryStatus.NOT_RETRIABLE)
        assert two.reason == "key_in_use"

    async def test_a_deleted_job_frees_its_key(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k", input=b"[1]"))
        await bench.store.delete("default", [first])
        [fresh] = await bench.submit(keyed("k", input=b"[2]", scope="any"))
        assert not fresh.duplicate

    async def test_deleting_an_older_job_leaves_the_key_of_a_newer(self, bench: Bench) -> None:
        first = await _finish(bench, keyed("k"))
        [second] = await bench.submit(keyed("k"))
        await bench.store.delete("default", [first])
        [again] = await bench.submit(keyed("k"))
        assert (again.duplicate, again.id) == (True, second.id)


async def _finish(bench: Bench, new: NewJob, move: Move = Move.COMPLETE) -> str:
    [accepted] = await bench.submit(new)
    assert not accepted.duplicate
    await bench.settle(await bench.claim_one(types=[new.type]), move)
    return accepted.id


async def _retry(bench: Bench, job_id: str) -> None:
    [answer] = await bench.store.retry("default", [job_id], RetryRequest())
    assert answer.status is RetryStatus.QUEUED


class KeyUpdateContract(Contract):
    """When the input of a waiting job is updated, its key stands for the new input (safe-12)."""

    async def test_after_an_update_the_key_stands_for_the_new_input(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k", input=b"[1]"))
        await bench.store.update("default", first.id, UpdateRequest(input=b"[2]"))
        [again] = await bench.submit(keyed("k", input=b"[2]"))
        assert (again.duplicate, again.id) == (True, first.id)
        assert isinstance(await bench.answer(keyed("k", input=b"[1]")), Conflict)

    async def test_after_an_update_the_window_stands_for_the_new_input(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k", input=b"[1]"))
        await bench.store.update("default", first.id, UpdateRequest(input=b"[2]"))
        await bench.settle(await bench.claim_one())
        [again] = await bench.submit(keyed("k", scope="any", input=b"[2]"))
        assert (again.duplicate, again.id) == (True, first.id)
        assert isinstance(await bench.answer(keyed("k", scope="any", input=b"[1]")), Conflict)

    async def test_in_the_next_run_the_key_still_stands_for_the_new_input(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k", input=b"[1]"))
        await bench.settle(await bench.claim_one(), Move.FAIL)
        await bench.store.retry("default", [first.id], RetryRequest(delay_us=HOUR))
        await bench.store.update("default", first.id, UpdateRequest(input=b"[2]"))
        [again] = await bench.submit(keyed("k", input=b"[2]"))
        assert (again.duplicate, again.id) == (True, first.id)

    async def test_an_update_without_a_new_input_leaves_the_key(self, bench: Bench) -> None:
        [first] = await bench.submit(keyed("k", input=b"[1]"))
        await bench.store.update("default", first.id, UpdateRequest(priority=5, run_at=bench.runtime.now() + HOUR))
        [again] = await bench.submit(keyed("k", input=b"[1]"))
        assert (again.duplicate, again.id) == (True, first.id)
