"""Who waits for whom, as rows. New edges are kept back until somebody asks for edges."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind

_edges = msgspec.json.Decoder(list[Edge])


class EdgeBook:
    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._new: list[Edge] = []

    def add(self, edges: Sequence[Edge]) -> None:
        self._new += edges

    def waiting(self, parents: Sequence[tuple[ParentKind, int]], limit: int) -> list[Edge]:
        self.flush()
        return _edges.decode(self._tx.value(self._tx.sql.waiting_edges, (_json(parents), limit)))

    def ended_otherwise(self, parents: Sequence[tuple[ParentKind, int]]) -> list[Edge]:
        self.flush()
        return _edges.decode(self._tx.value(self._tx.sql.ended_edges, (_json(parents),)))

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        self.flush()
        rows = [(edge.seq, edge.position) for edge in edges]
        self._tx.run_rows(self._tx.sql.set_ending, rows, None if ending is None else ending.value)

    def flush(self) -> None:
        new, self._new = self._new, []
        self._tx.run_rows(
            self._tx.sql.insert_edges,
            [
                (edge.seq, edge.position, edge.kind.value, edge.parent, edge.parent_id, _told(edge.ending))
                for edge in new
            ],
        )


def edges_of(tx: Tx, seqs: Sequence[int]) -> list[Edge]:
    """What these jobs wait for or waited for, by child and position."""
    return _edges.decode(tx.value(tx.sql.edges_of, (msgspec.json.encode(seqs).decode(),)))


def _told(ending: Ending | None) -> str | None:
    return None if ending is None else ending.value


def _json(parents: Sequence[tuple[ParentKind, int]]) -> str:
    return msgspec.json.encode(parents).decode()
