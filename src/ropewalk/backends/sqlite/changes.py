"""What one verb changed, written together at its end: records, attempts, events, follow-ups, closed keys."""

from __future__ import annotations

from ropewalk.backends._sql.columns import json_text
from ropewalk.backends.sqlite import keys, records
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Row, Tx
from ropewalk.domain.job import AttemptRecord, EventRecord, JobRecord, NewJob, new_record
from ropewalk.domain.transition import Effects


class Changes:
    def __init__(self, tx: Tx, lanes: LaneBook) -> None:
        self._tx = tx
        self._lanes = lanes
        self._jobs: dict[int, JobRecord] = {}
        self._attempts: list[Row] = []
        self._events: list[Row] = []
        self._follow_ups: list[NewJob] = []

    def moved(self, job: JobRecord, effects: Effects) -> None:
        """A transition of the domain."""
        self._jobs[job.seq] = job
        if effects.attempt is not None:
            self._attempts.append(_attempt_row(effects.attempt))
        if effects.event is not None:
            self._events.append(_event_row(effects.event))
        if effects.follow_up is not None:
            self._follow_ups.append(effects.follow_up)

    def noted(self, job: JobRecord, event: EventRecord) -> None:
        """Something an operator did."""
        self._jobs[job.seq] = job
        self._events.append(_event_row(event))

    def write(self) -> None:
        tx = self._tx
        records.save(tx, list(self._jobs.values()))
        tx.run_rows(SQL.insert_attempts, self._attempts)
        tx.run_rows(SQL.insert_events, self._events)
        for job in self._jobs.values():
            if job.terminal:
                keys.close(tx, job)
        for new in self._follow_ups:
            self._add(new)

    def _add(self, new: NewJob) -> None:
        """A compensation's id follows from what it compensates: if it is there already, once was enough."""
        if self._tx.value(SQL.seq_of_id, (new.id, new.tenant)) is None:
            [seq] = records.take_seqs(self._tx, 1)
            records.insert(self._tx, self._lanes, [new_record(new, seq=seq, now=self._tx.now)])


def _attempt_row(ended: AttemptRecord) -> Row:
    return (
        ended.seq,
        ended.fence,
        ended.run,
        ended.attempt,
        ended.move.value,
        ended.start_rev,
        ended.rev,
        ended.started_at,
        ended.ended_at,
        ended.owner,
        json_text(ended.error),
        ended.next_run_at,
    )


def _event_row(event: EventRecord) -> Row:
    return event.seq, event.rev, event.kind, event.at, event.reason
