"""The scopes of one transaction: each is read once, changed in place, and written back where it changed."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import msgspec

from ropewalk.backends.sql.columns import json_text
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.workflow.group_value import NOTHING, Contribution
from ropewalk.domain.workflow.scope import Scope

_scopes = msgspec.json.Decoder(list[Scope])
_positions = msgspec.json.Decoder(dict[int, int])


class ScopeBook:
    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._held: dict[int, Scope | None] = {}
        self._as_stored: dict[int, Scope] = {}
        self._kept: list[tuple[int, int, Contribution]] = []

    def get(self, ids: Iterable[int]) -> dict[int, Scope]:
        wanted = list(ids)
        self._read([each for each in wanted if each not in self._held])
        return {each: scope for each in wanted if (scope := self._held[each]) is not None}

    def add(self, scope: Scope) -> None:
        self._held[scope.id] = scope

    def keep(self, root: int, seq: int, contribution: Contribution) -> None:
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
        for scope in _scopes.decode(self._tx.value(self._tx.sql.load_scopes, (_json(ids),))):
            self._held[scope.id] = scope
            self._as_stored[scope.id] = copy.copy(scope)

    def _write_kept(self) -> None:
        """Each after all earlier ones of its group."""
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
