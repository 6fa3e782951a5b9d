"""Settles attempts. Each settlement of a batch takes the first of these ways that fits it:

    completions that change only their own row        `_complete_plain`         one statement for all of them
    completions that also change counters of a scope  `Settling.settle_members` one statement, and sums for the scopes
    anything else                                     `Settling.settle_one`     decided by the domain, one by one

domain/jobs/flags.py defines which flags of a job allow the first two ways (SETTLES_ALONE, SETTLES_IN_SCOPE), and
domain/workflow/completion.py which completion plans do. PostgreSQL tries one more way before these
(backends/postgres/completion.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from ropewalk.backends.sql import logs, steps
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statistics import CounterBook, Done
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.completion import PreparedPlan
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.flags import SETTLES_ALONE, SETTLES_IN_SCOPE
from ropewalk.domain.jobs.lease import loss_reason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Effects, Settlement
from ropewalk.domain.workflow.completion import leaves_only_a_contribution, leaves_only_a_result
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE, Contribution, contribute
from ropewalk.domain.workflow.scope import ScopeChange
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements

Held: TypeAlias = dict[int, tuple[int, int]]
"""The fence and the scope of each job, by its seq."""

_members = msgspec.json.Decoder(list[tuple[int, int, int]])
_COMPLETE: Final = Move.COMPLETE


def settle(tx: Tx, lanes: LaneBook, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    """Settles attempts, and does everything that follows from their ends."""
    answers = _complete_plain(tx, lanes, owner, settlements)
    if None not in answers:
        logs.write(tx, settlements)
        return Settlements(settled=[answer for answer in answers if answer is not None], consequences=Consequences())
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    settling = Settling(tx, unit_of_work, propagation, owner)
    settling.settle_members(settlements, answers)
    unit_of_work.load([asked.seq for asked, answer in zip(settlements, answers, strict=True) if answer is None])
    settled = [answer or settling.settle_one(asked) for asked, answer in zip(settlements, answers, strict=True)]
    consequences = propagation.run()
    unit_of_work.flush()
    logs.write(tx, [asked for asked, answer in zip(settlements, settled, strict=True) if answer.move is not None])
    return Settlements(settled=settled, consequences=consequences)


def _complete_plain(tx: Tx, lanes: LaneBook, owner: str, settlements: Sequence[Settlement]) -> list[Settled | None]:
    """Settles completions that change only their own row. The answer is None for every other settlement."""
    seen: set[int] = set()
    plain: list[Settlement | None] = []
    rows: list[Row] = []
    for asked in settlements:
        seq, first = asked.seq, asked.seq not in seen
        seen.add(seq)
        # Of several settlements of one lease the first counts.
        if first and asked.move is _COMPLETE and leaves_only_a_result(asked.plan):
            plain.append(asked)
            rows.append((seq, asked.fence, tx.blob(asked.result)))
        else:
            plain.append(None)
    completed = complete(tx, owner, rows, SETTLES_ALONE)
    counters = CounterBook(tx, lanes)
    counters.completed(completed, filter(None, plain))
    counters.flush()
    done = set(completed.seqs)
    return [
        Settled(seq=asked.seq, fence=asked.fence, move=_COMPLETE) if asked is not None and asked.seq in done else None
        for asked in plain
    ]


class Settling:
    """The state of one batch of settlements. The caller flushes the unit of work."""

    def __init__(self, tx: Tx, unit_of_work: SqlUnitOfWork, propagation: Propagation, owner: str) -> None:
        self._tx = tx
        self._unit_of_work = unit_of_work
        self._propagation = propagation
        self._owner = owner

    def settle_members(self, settlements: Sequence[Settlement], answers: list[Settled | None]) -> None:
        """Settles completions without an answer that change only their own row and the counters of their scope."""
        held = self._held([each.seq for each, told in zip(settlements, answers, strict=True) if told is None])
        if not held:
            return
        rows: list[Row] = []
        completing: list[Settlement] = []
        changes: dict[int, ScopeChange] = {}
        added: list[tuple[int, int, Contribution]] = []
        for at, scope_id in _only_counted(settlements, answers, held):
            asked = settlements[at]
            rows.append((asked.seq, asked.fence, self._tx.blob(asked.result)))
            completing.append(asked)
            answers[at] = Settled(seq=asked.seq, fence=asked.fence, move=_COMPLETE)
            change = changes.get(scope_id) or changes.setdefault(scope_id, ScopeChange(scope=scope_id))
            change.left += 1
            change.completed += 1
            if (contribution := _contribution(asked)) is not None:
                added.append((scope_id, asked.seq, contribution))
        self._complete(rows, completing)
        self._contribute(added)
        self._propagation.add(changes.values())

    def settle_one(self, asked: Settlement) -> Settled:
        """Settles one attempt as the domain decides on its record."""
        job = next(iter(self._unit_of_work.load([asked.seq])), None)
        reason = loss_reason(job, asked.fence, self._owner)
        if job is None or reason is not None:
            return Settled(seq=asked.seq, fence=asked.fence, lost=reason)
        prepared = None
        if asked.move is _COMPLETE and asked.plan is not None:
            prepared = PreparedPlan(self._unit_of_work, job, asked.plan)
            refused = prepared.refusal()
            if refused is not None:
                return Settled(seq=asked.seq, fence=asked.fence, refused=refused)
        effects = self._settle(job, asked)
        if prepared is not None:
            prepared.write(self._propagation)
        if job.terminal:
            self._propagation.ended(job, effects, continued=prepared is not None and prepared.continues)
        else:
            self._unit_of_work.record(job, effects)
        seen = None if effects.move is _COMPLETE else job
        return Settled(seq=asked.seq, fence=asked.fence, job=seen, move=effects.move)

    def _settle(self, job: JobRecord, asked: Settlement) -> Effects:
        suspension = asked.suspension
        arrived = suspension is not None and steps.signal_arrived(self._tx, job.seq, suspension.signal)
        self._unit_of_work.take(job)
        effects = transition.settle(job, asked, self._tx.now, signal_arrived=arrived)
        if effects.move is Move.SUSPEND and suspension is not None:
            steps.keep_suspension(self._tx, job.seq, suspension.step_at(self._tx.now))
        return effects

    def _held(self, seqs: list[int]) -> Held:
        """Returns those of the jobs that this owner holds and whose end changes only the counters of their scope."""
        if not seqs:
            return {}
        wanted = msgspec.json.encode(seqs).decode()
        found = self._tx.value(self._tx.sql.held_members, (wanted, self._owner, SETTLES_IN_SCOPE))
        return {seq: (fence, scope_id) for seq, fence, scope_id in _members.decode(found)}

    def _complete(self, rows: list[Row], settlements: list[Settlement]) -> None:
        done = complete(self._tx, self._owner, rows, SETTLES_IN_SCOPE)
        assert len(done.seqs) == len(rows), f"{len(rows)} leases were held, {len(done.seqs)} could be completed"
        self._unit_of_work.counters.completed(done, settlements)

    def _contribute(self, added: list[tuple[int, int, Contribution]]) -> None:
        scopes = self._unit_of_work.scopes({scope_id for scope_id, _, _ in added})
        roots = self._unit_of_work.scopes({scope.root for scope in scopes.values()})
        for scope_id, seq, contribution in added:
            root = roots.get(scopes[scope_id].root) if scope_id in scopes else None
            if root is not None:
                root.value = contribute(root.value, contribution)
                if contribution.reducer in KEPT_ONE_BY_ONE:
                    self._unit_of_work.keep_contribution(root.id, seq, contribution)


def complete(tx: Tx, owner: str, rows: list[Row], flags: int) -> Done:
    """Completes those of these rows (seq, fence, result) whose leases this owner holds and whose jobs have no other
    flags than these."""
    if not rows:
        return Done([], [], [], [], [])
    return Done(*tx.run_returning(tx.sql.complete_plain, rows, tx.known_now, owner, flags))


def _only_counted(
    settlements: Sequence[Settlement], answers: Sequence[Settled | None], held: Held
) -> list[tuple[int, int]]:
    """Returns the settlements, by their index, that change only the counters of their scope, each with that scope.

    Contributions are added in the order of the settlements: if one of them needs the long way, all of them take it.
    """
    contributing = all(_fits(asked, held) for asked in settlements if _contribution(asked) is not None)
    found: list[tuple[int, int]] = []
    for at, asked in enumerate(settlements):
        fits = answers[at] is None and _fits(asked, held)
        _, scope_id = held.pop(asked.seq, (0, 0))  # of several settlements of one lease the first counts
        if fits and (contributing or _contribution(asked) is None):
            found.append((at, scope_id))
    return found


def _contribution(asked: Settlement) -> Contribution | None:
    return None if asked.plan is None else asked.plan.contribution


def _fits(asked: Settlement, held: Held) -> bool:
    """Whether this settlement changes only the counters of a scope, according to its plan and to the lease that is
    held."""
    if asked.move is not _COMPLETE or asked.seq not in held or held[asked.seq][0] != asked.fence:
        return False
    return leaves_only_a_contribution(asked.plan)
