"""The table of moves: each legal move is made and each illegal one is refused, through the verbs of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import pytest

from ropewalk.domain.jobs.operations import EndRequest, RetryRequest
from ropewalk.domain.jobs.record import DEFAULT_TENANT, JobRecord
from ropewalk.domain.jobs.states import LEGAL_MOVES, SETTLING, TERMINAL, Move, Status
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.ports.store.capabilities import WORKFLOWS, Capability
from ropewalk.ports.store.reading import StoredHistory
from ropewalk.ports.store.submission import SkipQueue
from ropewalk.testing.contract.base import Contract, case
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, LEASE, gate_on, new_job

Step: TypeAlias = tuple[Move, Status | None, Status | None]
"""A move, the status before it and the status after it; None means that the job does not exist."""
Asking: TypeAlias = Callable[[Bench, JobRecord | None], Awaitable[object]]
"""A call that asks the store for a move of the walked job; it gets the record that the last claim returned, if any."""

WALKED: Final = "walked"
PARENT: Final = "parent"
BY_A_GATE: Final[dict[Move, Policy]] = {Move.DOOM: "fail", Move.SKIP: "skip"}
PLACES: Final[tuple[Status | None, ...]] = (None, *Status)
BY_DAMAGE: Final = Move.SET_ASIDE
"""The move that no verb asks for, because only a row that cannot be read causes it."""
LEGAL: Final = sorted(
    ((move, before, after) for move, pairs in LEGAL_MOVES.items() for before, after in pairs if move is not BY_DAMAGE),
    key=str,
)
ILLEGAL: Final = [
    (move, before) for move in Move for before in PLACES if all(pair[0] != before for pair in LEGAL_MOVES[move])
]
NO_ENDS: Final = [move for move in Move if move not in SETTLING]


def _needed_by(move: Move) -> tuple[Capability[Any], ...]:
    return (WORKFLOWS,) if move in (Move.SUSPEND, Move.END, Move.DOOM, Move.SKIP) else ()


class MovesContract(Contract):
    """Every legal move can happen, and every illegal one is refused; a finished job stays finished (safe-2, safe-6)."""

    @pytest.mark.parametrize("step", [case(step, of=_needed_by(step[0]), id=str(step)) for step in LEGAL])
    async def test_every_legal_move_happens(self, bench: Bench, step: Step) -> None:
        move, before, after = step
        job = await _bring_to(bench, before, move)
        await WAYS[step](bench, job)
        assert await _place(bench) is after
        if after is not None:
            leased_at_once = move is Move.SUBMIT and after is Status.RUNNING
            assert (await bench.job(WALKED)).last_move is (Move.CLAIM if leased_at_once else move)

    @pytest.mark.parametrize(("move", "before"), [case(*each, of=_needed_by(each[0])) for each in ILLEGAL])
    async def test_every_illegal_move_is_refused(self, bench: Bench, move: Move, before: Status | None) -> None:
        """By every way that leads to it from somewhere else."""
        job = await _bring_to(bench, before, move)
        untouched = await _all_about(bench)
        for asking in [way for step, way in WAYS.items() if step[0] is move]:
            await asking(bench, job)
            assert await _all_about(bench) == untouched

    @pytest.mark.parametrize("move", [case(move, of=_needed_by(move)) for move in NO_ENDS])
    async def test_a_settlement_with_a_move_that_ends_no_attempt_raises(self, bench: Bench, move: Move) -> None:
        """A settlement that asks for what is no end of an attempt is a bug: it raises and changes nothing."""
        job = await _bring_to(bench, Status.RUNNING, move)
        assert job is not None
        untouched = await _all_about(bench)
        with pytest.raises((KeyError, ValueError, AssertionError)):
            await bench.settle(job, move)
        assert await _all_about(bench) == untouched


async def _bring_to(bench: Bench, place: Status | None, move: Move) -> JobRecord | None:
    """Bring the walked job into this status, and return the record that its claim returned, if it was claimed.

    A job that is to be doomed depends on an open job, and on another job that has let it start.
    """
    gate = None
    if move in BY_A_GATE:
        await bench.add("a", id=PARENT)
        done = await bench.finished(type="b")
        parents = (PARENT,) if place is Status.WAITING else (PARENT, done.id)
        gate = gate_on(*parents, when="any_success", policy=BY_A_GATE[move])
    if place is None:
        return None
    await bench.add(id=WALKED, ttl_us=10 * HOUR, gate=gate)
    if place is Status.WAITING:
        return None
    job = await bench.claim_one(owner="walker", types=["t"])
    if place in TERMINAL:
        [end] = [move for move in (Move.COMPLETE, Move.FAIL, Move.BURY, Move.CANCEL) if SETTLING[move] is place]
        await bench.settle(job, end)
    return job


async def _place(bench: Bench) -> Status | None:
    job = await bench.find(WALKED)
    return None if job is None else job.status


async def _all_about(bench: Bench) -> tuple[JobRecord, object, object] | None:
    trail: StoredHistory | None = await bench.store.history(DEFAULT_TENANT, WALKED)
    return None if trail is None else (trail.job, trail.attempts, trail.events)


async def _submit(bench: Bench, _: JobRecord | None) -> None:
    await bench.submit(new_job(id=WALKED))


async def _submit_leased(bench: Bench, _: JobRecord | None) -> None:
    await bench.submit(new_job(id=WALKED), skip_queue=SkipQueue(owner="walker", ticket=1, lease_us=LEASE))


async def _claim(bench: Bench, _: JobRecord | None) -> None:
    await bench.claim(owner="walker")


async def _sweep_leases(bench: Bench, _: JobRecord | None) -> None:
    await bench.runtime.advance(LEASE / SECOND)
    await bench.sweep(9)


async def _sweep_deadlines(bench: Bench, _: JobRecord | None) -> None:
    await bench.runtime.advance(hours=11)
    await bench.sweep(9)


async def _cancel(bench: Bench, _: JobRecord | None) -> None:
    await bench.store.cancel(DEFAULT_TENANT, [WALKED], reason=None, force=True)


async def _fail_its_parent(bench: Bench, _: JobRecord | None) -> None:
    parent = await bench.claim_one(owner="parent", types=["a"])
    await bench.settle(parent, Move.FAIL)


async def _complete_from_outside(bench: Bench, _: JobRecord | None) -> None:
    await bench.store.end(DEFAULT_TENANT, WALKED, EndRequest())


async def _fail_from_outside(bench: Bench, _: JobRecord | None) -> None:
    await bench.store.end(DEFAULT_TENANT, WALKED, EndRequest(error=BOOM))


async def _retry(bench: Bench, _: JobRecord | None) -> None:
    await bench.store.retry(DEFAULT_TENANT, [WALKED], RetryRequest(include_cancelled=True))


async def _delete(bench: Bench, _: JobRecord | None) -> None:
    await bench.store.delete(DEFAULT_TENANT, [WALKED])


def _settle(move: Move) -> Asking:
    async def asking(bench: Bench, job: JobRecord | None) -> None:
        """By the last holder; where nobody ever held it, by somebody who made a lease up."""
        seq, fence = (1, 1) if job is None else (job.seq, job.fence)
        await bench.settle_all("walker", [Settlement(seq=seq, fence=fence, move=move)])

    return asking


W, R = Status.WAITING, Status.RUNNING
C, F = Status.COMPLETED, Status.FAILED

WAYS: Final[dict[Step, Asking]] = {
    (Move.SUBMIT, None, W): _submit,
    (Move.SUBMIT, None, R): _submit_leased,
    (Move.CLAIM, W, R): _claim,
    **{(move, R, after): _settle(move) for move, after in SETTLING.items()},
    (Move.LOSE, R, W): _sweep_leases,
    (Move.EXPIRE, W, Status.DEAD_LETTER): _sweep_deadlines,
    (Move.CANCEL, W, Status.CANCELLED): _cancel,
    (Move.DOOM, W, F): _fail_its_parent,
    (Move.SKIP, W, C): _fail_its_parent,
    **{(Move.END, before, C): _complete_from_outside for before in (W, R)},
    **{(Move.END, before, F): _fail_from_outside for before in (W, R)},
    **{(Move.RESTART, before, W): _retry for before, _ in LEGAL_MOVES[Move.RESTART]},
    **{(Move.DELETE, before, None): _delete for before, _ in LEGAL_MOVES[Move.DELETE]},
}
