"""The rows that connect jobs: the edges of dependencies, the scopes, and the outbox of orphan groups. A book collects
what one transaction reads and writes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import msgspec

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.records import json_text
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.backends.workflow.scopes import orphan_of
from ropewalk.domain.time import Span
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import NOTHING, Contribution
from ropewalk.domain.workflow.scope import ORPHANS_RECORDED_FOR, ORPHANS_RENEWED_AFTER, Scope
from ropewalk.ports.store.workflows import OrphanRecord

_edges = Rows("edge", Edge)


class EdgeBook:
    """The edges of one transaction. New edges are collected, and written before edges are read or the transaction
    ends."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._new: list[Edge] = []

    def add(self, edges: Sequence[Edge]) -> None:
        self._new += edges

    def waiting(self, parents: Sequence[tuple[ParentKind, int]], limit: int) -> list[Edge]:
        """Returns unresolved edges to these parents, up to a limit."""
        self.flush()
        return _edges.decode(self._tx, self._tx.value(self._tx.sql.waiting_edges, (_edge_json(parents), limit)))

    def of_children(self, seqs: Iterable[int]) -> list[Edge]:
        self.flush()
        return edges_of(self._tx, list(seqs))

    def ended_otherwise(self, parents: Sequence[tuple[ParentKind, int]]) -> list[Edge]:
        """Returns the edges to these parents whose ending is another one than completed."""
        self.flush()
        return _edges.decode(self._tx, self._tx.value(self._tx.sql.ended_edges, (_edge_json(parents),)))

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        self.flush()
        rows = [(edge.seq, edge.position) for edge in edges]
        self._tx.run_rows(self._tx.sql.set_ending, rows, None if ending is None else ending.value)

    def flush(self) -> None:
        new, self._new = self._new, []
        self._tx.run_rows(
            self._tx.sql.insert_edges,
            [
                (edge.seq, edge.position, edge.kind.value, edge.parent, edge.parent_id, _ending_value(edge.ending))
                for edge in new
            ],
        )


def edges_of(tx: Tx, seqs: Sequence[int]) -> list[Edge]:
    """Returns the edges to everything that these jobs wait or waited for, ordered by child and position."""
    return _edges.decode(tx, tx.value(tx.sql.edges_of, (msgspec.json.encode(seqs).decode(),)))


def _ending_value(ending: Ending | None) -> str | None:
    return None if ending is None else ending.value


def _edge_json(parents: Sequence[tuple[ParentKind, int]]) -> str:
    return msgspec.json.encode(parents).decode()


def _break(scope: Scope, unread: Sequence[str]) -> None:
    """Counts a failure in a scope whose value cannot be read, because the group must not look as if it had succeeded
    without a value."""
    if "value" in unread:
        scope.broken = max(1, scope.broken)


_scopes = Rows("scope", Scope, stand_in=_break)
_positions = msgspec.json.Decoder(dict[int, int])


class ScopeBook:
    """The scopes of one transaction: each is read once, changed in place, and written back if it has changed."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._held: dict[int, Scope | None] = {}
        self._as_stored: dict[int, Scope] = {}
        self._kept: list[tuple[int, int, Contribution]] = []

    def get(self, ids: Iterable[int]) -> dict[int, Scope]:
        """Returns those of these scopes that exist."""
        wanted = list(ids)
        self._read([each for each in wanted if each not in self._held])
        return {each: scope for each in wanted if (scope := self._held[each]) is not None}

    def add(self, scope: Scope) -> None:
        self._held[scope.id] = scope

    def keep(self, root: int, seq: int, contribution: Contribution) -> None:
        """Adds a contribution that is stored by itself, because the value of its group is put together when it is
        read."""
        self._kept.append((root, seq, contribution))

    def flush(self) -> None:
        changed = [scope for scope in self._held.values() if scope and scope != self._as_stored.get(scope.id)]
        self._tx.run_rows(self._tx.sql.save_scopes, [_row(scope) for scope in changed])
        self._as_stored |= {scope.id: copy.copy(scope) for scope in changed}
        self._write_kept()

    def _read(self, ids: list[int]) -> None:
        if not ids:
            return
        self._held |= dict.fromkeys(ids)
        for scope in _scopes.decode(self._tx, self._tx.value(self._tx.sql.load_scopes, (_json(ids),))):
            self._held[scope.id] = scope
            self._as_stored[scope.id] = copy.copy(scope)

    def _write_kept(self) -> None:
        """Writes the new contributions, each at the position behind all earlier ones of its group."""
        kept, self._kept = self._kept, []
        if not kept:
            return
        last = _positions.decode(self._tx.value(self._tx.sql.last_positions, (_json([root for root, _, _ in kept]),)))
        rows: list[Row] = []
        for root, seq, contribution in kept:
            last[root] += 1
            rows.append((root, last[root], seq, contribution.type, contribution.value))
        self._tx.run_rows(self._tx.sql.insert_contributions, rows)


def _json(ids: list[int]) -> str:
    return msgspec.json.encode(ids).decode()


def _row(scope: Scope) -> Row:
    return (
        scope.id,
        scope.tenant,
        scope.owner_id,
        scope.group_id,
        scope.root,
        scope.parent,
        scope.generation,
        scope.open,
        scope.members,
        scope.completed,
        scope.failed,
        scope.cancelled,
        scope.broken,
        scope.awaited_until,
        scope.closed_at,
        int(scope.report_orphan),
        json_text(scope.cancel),
        None if scope.value == NOTHING else json_text(scope.value),
    )


_payloads = Rows("outbox", OrphanRecord)


def put_orphan(tx: Tx, scope: Scope) -> None:
    """Records an orphan group in the outbox, where it stays until it has been reported."""
    orphan = orphan_of(scope)
    payload = msgspec.json.encode(orphan).decode()
    tx.run(tx.sql.put_orphan, (orphan.id, tx.now, tx.now, payload, int(scope.report_orphan), tx.now))


def orphans_are_taken(tx: Tx) -> bool:
    """Whether a worker takes orphan groups, so that those of every client are recorded."""
    return tx.row(tx.sql.orphans_are_taken, (tx.now,)) is not None


def take_orphans(tx: Tx, limit: int, hide_us: Span) -> list[OrphanRecord]:
    """Returns orphan groups to report, and hides them from other workers for a while."""
    until = tx.now + ORPHANS_RECORDED_FOR
    tx.run(tx.sql.record_orphans, (tx.now, until, until - ORPHANS_RENEWED_AFTER))
    orphans = _payloads.decode(tx, tx.value(tx.sql.due_orphans, (tx.now, tx.now + hide_us, limit)))
    if orphans:
        ids = msgspec.json.encode([orphan.id for orphan in orphans]).decode()
        tx.run(tx.sql.hide_orphans, (tx.now + hide_us, ids))
    return orphans


def orphan_reported(tx: Tx, orphan_id: str) -> None:
    """Deletes an orphan group that was reported."""
    tx.run(tx.sql.delete_orphan, (orphan_id,))
