"""Calls that are repeated because their answer was lost after the commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from ropewalk.domain.jobs.operations import EndRequest, RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import DAY, HOUR, MINUTE
from ropewalk.domain.workflow.completion import SIGNAL_KNOWN_FOR, StepRecord
from ropewalk.ports.store.capabilities import LIMITS, QUOTAS, WORKFLOWS, Capability
from ropewalk.ports.store.leases import Note, Renewal
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.workflows import SignalAnswer
from ropewalk.testing.contract.base import Contract, case, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import LEASE, keyed, new_job, settlement, worker_card

STEP = StepRecord(position=0, name="charge", kind="step", value=b"1")
WAIT = StepRecord(position=0, name="wait", kind="signal")

Call: TypeAlias = Callable[[], Awaitable[object]]
"""A call of a verb that changes something; the test makes it twice."""
Prepare: TypeAlias = Callable[[Bench], Awaitable[Call]]
"""A function that prepares a store and returns the call to make."""


async def _submit(bench: Bench) -> Call:
    jobs = [new_job(id="a"), keyed("k", id="b")]
    return lambda: bench.store.submit([Submission(jobs=jobs)])


async def _spawn(bench: Bench) -> Call:
    job = await bench.running()
    child = new_job(id="child", parent_id=job.id, spawn_key="one")
    return lambda: bench.store.submit([Submission(jobs=[child], under=holder(job))])


async def _cancel_waiting(bench: Bench) -> Call:
    job_id = await bench.add()
    return lambda: bench.store.cancel("default", [job_id], reason="why", force=False)


async def _cancel_running(bench: Bench) -> Call:
    job = await bench.running()
    return lambda: bench.store.cancel("default", [job.id], reason="why", force=True)


async def _cancel_group(bench: Bench) -> Call:
    job = await bench.running()
    return lambda: bench.store.cancel_group("default", job.id, reason="why", force=False)


async def _retry(bench: Bench) -> Call:
    job = await bench.finished(Move.FAIL)
    return lambda: bench.store.retry("default", [job.id], RetryRequest())


async def _update(bench: Bench) -> Call:
    job_id = await bench.add()
    return lambda: bench.store.update("default", job_id, UpdateRequest(input=b"[1]", priority=7))


async def _trigger(bench: Bench) -> Call:
    job_id = await bench.add(delay_us=HOUR)
    return lambda: bench.store.update("default", job_id, UpdateRequest(run_now=True))


async def _delete(bench: Bench) -> Call:
    job = await bench.finished()
    return lambda: bench.store.delete("default", [job.id])


async def _purge(bench: Bench) -> Call:
    job_id = await bench.add()
    return lambda: bench.store.purge("default", [job_id])


async def _register(bench: Bench) -> Call:
    return lambda: bench.store.register(worker_card("w"))


async def _unregister(bench: Bench) -> Call:
    await bench.store.register(worker_card("w"))
    return lambda: bench.store.unregister("w")


async def _drain(bench: Bench) -> Call:
    await bench.store.register(worker_card("w"))
    return lambda: bench.store.drain("w")


async def _renew(bench: Bench) -> Call:
    job = await bench.running()
    renewal = Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)
    return lambda: bench.store.renew("worker", [renewal])


async def _note(bench: Bench) -> Call:
    job = await bench.running()
    note = Note(holder=holder(job), checkpoint=b"1", progress=Progress(50.0, "half", bench.runtime.now()))
    return lambda: bench.store.note(note)


def _settle(move: Move) -> Prepare:
    async def prepare(bench: Bench) -> Call:
        job = await bench.running()
        return lambda: bench.store.settle("worker", [settlement(job, move)])

    return prepare


async def _record_step(bench: Bench) -> Call:
    job = await bench.running()
    return lambda: bench.store.record_step(holder(job), STEP)


async def _take_signal(bench: Bench) -> Call:
    job = await bench.running()
    for value in (b"1", b"2"):
        await bench.store.signal("default", job.id, "ring", value)
    return lambda: bench.store.take_signal(holder(job), WAIT, "ring")


async def _signal(bench: Bench) -> Call:
    job = await bench.running()
    return lambda: bench.store.signal("default", job.id, "ring", b"1", signal_id="mine")


async def _complete(bench: Bench) -> Call:
    job_id = await bench.add()
    return lambda: bench.store.end("default", job_id, EndRequest(result=b"1"))


async def _sweep(bench: Bench) -> Call:
    await bench.running()
    await bench.runtime.advance(hours=1)
    return lambda: bench.store.sweep(9)


async def _pause(bench: Bench) -> Call:
    await bench.add()
    return lambda: bench.store.pause("default", "default", paused=True)


async def _put_limit(bench: Bench) -> Call:
    return lambda: bench.store.put_limit(FlowLimit(tenant="default", kind="queue", name="q", concurrency=1))


async def _remove_limit(bench: Bench) -> Call:
    await bench.store.put_limit(FlowLimit(tenant="default", kind="queue", name="q", concurrency=1))
    return lambda: bench.store.remove_limit("default", "queue", "q")


async def _put_quota(bench: Bench) -> Call:
    return lambda: bench.store.put_quota(Quota(tenant="default", pending=9))


async def _remove_quota(bench: Bench) -> Call:
    await bench.store.put_quota(Quota(tenant="default", pending=9))
    return lambda: bench.store.remove_quota("default")


VERBS: dict[str, Prepare] = {
    "submit": _submit,
    "spawn": _spawn,
    "cancel a waiting job": _cancel_waiting,
    "cancel a running job": _cancel_running,
    "cancel a group": _cancel_group,
    "retry": _retry,
    "update": _update,
    "trigger": _trigger,
    "delete": _delete,
    "purge": _purge,
    "register": _register,
    "unregister": _unregister,
    "drain": _drain,
    "renew": _renew,
    "note": _note,
    "complete": _settle(Move.COMPLETE),
    "fail": _settle(Move.FAIL),
    "retry an attempt": _settle(Move.RETRY),
    "release": _settle(Move.RELEASE),
    "record a step": _record_step,
    "take a signal": _take_signal,
    "signal": _signal,
    "complete from outside": _complete,
    "sweep": _sweep,
    "pause": _pause,
    "put a limit": _put_limit,
    "remove a limit": _remove_limit,
    "put a quota": _put_quota,
    "remove a quota": _remove_quota,
}
"""The verbs that change something, without two: schedules are compared by version, and claims differ in tickets."""


NEEDED: dict[str, tuple[Capability[Any], ...]] = {
    **dict.fromkeys(
        ("spawn", "cancel a group", "record a step", "take a signal", "signal", "complete from outside"), (WORKFLOWS,)
    ),
    **dict.fromkeys(("put a limit", "remove a limit"), (LIMITS,)),
    **dict.fromkeys(("put a quota", "remove a quota"), (QUOTAS,)),
}


class RepeatContract(Contract):
    """A verb that is repeated after its answer was lost changes nothing more (safe-17)."""

    @pytest.mark.parametrize("verb", [case(verb, of=NEEDED.get(verb, ())) for verb in VERBS])
    async def test_a_verb_whose_answer_was_lost_is_repeated(self, bench: Bench, verb: str) -> None:
        call = await VERBS[verb](bench)
        await call()
        once = await _everything(bench)
        await call()
        assert await _everything(bench) == once


async def _everything(bench: Bench) -> list[object]:
    page = await bench.store.search("default", Filter(), order=Order.CREATED_ASC, cursor=None, limit=100)
    found: list[object] = [await bench.store.queues("default"), await bench.store.workers()]
    if (limits := LIMITS.if_declared(bench.store)) is not None:
        found += await limits.limits("default")
    if (quotas := QUOTAS.if_declared(bench.store)) is not None:
        found += await quotas.quotas()
    workflows = WORKFLOWS.if_declared(bench.store)
    for job in page.jobs:
        found += [job, await bench.history(job.id), [] if workflows is None else await workflows.steps(job.seq)]
    return found


@needs(WORKFLOWS)
class RepeatedSignalContract(Contract):
    """A signal has an id of its sender, and the same signal is put into the mailbox once (safe-17)."""

    async def test_a_repeated_signal_is_stored_once(self, bench: Bench) -> None:
        job = await bench.running()
        answers = [await _send(bench, job.id, "mine") for _ in range(2)]
        assert answers == [SignalAnswer.KEPT, SignalAnswer.DUPLICATE]
        assert await _taken(bench, job, 3) == 1

    async def test_a_repeated_signal_that_was_taken_meanwhile_is_not_stored_again(self, bench: Bench) -> None:
        job = await bench.running()
        await _send(bench, job.id, "mine")
        assert await _taken(bench, job, 1) == 1
        assert await _send(bench, job.id, "mine") is SignalAnswer.DUPLICATE
        assert await _taken(bench, job, 2, after=1) == 0

    async def test_a_repeated_signal_is_recognised_after_the_job_has_ended(self, bench: Bench) -> None:
        job = await bench.running()
        await _send(bench, job.id, "mine")
        await bench.settle(job)
        assert await _send(bench, job.id, "mine") is SignalAnswer.DUPLICATE
        assert await _send(bench, job.id, "another") is SignalAnswer.ALREADY_COMPLETE
        assert await _send(bench, job.id, "another") is SignalAnswer.ALREADY_COMPLETE

    async def test_signals_with_other_ids_or_none_are_other_signals(self, bench: Bench) -> None:
        job, other = await bench.running(), await bench.running()
        sent = [await _send(bench, job.id, each) for each in ("mine", "yours", None, None)]
        assert [*sent, await _send(bench, other.id, "mine")] == [SignalAnswer.KEPT] * 5
        assert (await _taken(bench, job, 9), await _taken(bench, other, 9)) == (4, 1)

    async def test_ids_of_signals_are_remembered_for_a_day(self, bench: Bench) -> None:
        job = await bench.running()
        await _send(bench, job.id, "mine")
        await bench.runtime.advance((SIGNAL_KNOWN_FOR - MINUTE) / 1_000_000)
        assert await _send(bench, job.id, "mine") is SignalAnswer.DUPLICATE
        await bench.runtime.advance(minutes=1)
        assert await _send(bench, job.id, "mine") is SignalAnswer.KEPT


async def _send(bench: Bench, job_id: str, signal_id: str | None) -> SignalAnswer:
    return await bench.store.signal("default", job_id, "ring", b"1", signal_id=signal_id)


async def _taken(bench: Bench, job: JobRecord, tries: int, *, after: int = 0) -> int:
    """Take signals until none is left, and return how many there were."""
    steps = [StepRecord(position=after + number, name="wait", kind="signal") for number in range(tries)]
    answers = [await bench.store.take_signal(holder(job), step, "ring") for step in steps]
    return sum(answer.taken is not None for answer in answers)


class RepeatedOnceContract(Contract):
    """The first caller of `once` is told again that it was the first, if it repeats the call with the same id
    (safe-17).
    """

    async def test_the_first_caller_of_once_is_told_so_again(self, bench: Bench) -> None:
        callers = ["a", "a", "b", "a", None]
        answers = [await bench.store.once("default", "k", HOUR, by=by) for by in callers]
        assert answers == [True, True, False, True, False]

    async def test_callers_of_once_without_an_id_are_not_recognised(self, bench: Bench) -> None:
        assert [await bench.store.once("default", "k", HOUR) for _ in range(2)] == [True, False]

    async def test_repeating_once_does_not_prolong_the_key(self, bench: Bench) -> None:
        assert await bench.store.once("default", "k", HOUR, by="a")
        await bench.runtime.advance(minutes=59)
        assert await bench.store.once("default", "k", DAY, by="a")
        await bench.runtime.advance(minutes=1)
        assert await bench.store.once("default", "k", HOUR, by="b")
        assert not await bench.store.once("default", "k", HOUR, by="a")
