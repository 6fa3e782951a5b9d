"""Attempts and events as rows, collected and written together."""

from __future__ import annotations

from ropewalk.backends.sql.columns import json_text
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord
from ropewalk.domain.jobs.transition import Effects


class Journal:
    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._attempts: list[Row] = []
        self._events: list[Row] = []

    def add(self, effects: Effects) -> None:
        if effects.attempt is not None:
            self._attempts.append(_attempt_row(effects.attempt))
        if effects.event is not None:
            self.add_event(effects.event)

    def add_event(self, event: EventRecord) -> None:
        self._events.append((event.seq, event.rev, event.kind, event.at, event.reason))

    def flush(self) -> None:
        attempts, self._attempts = self._attempts, []
        events, self._events = self._events, []
        self._tx.run_rows(self._tx.sql.insert_attempts, attempts)
        self._tx.run_rows(self._tx.sql.insert_events, events)


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
