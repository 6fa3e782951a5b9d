"""pgqueuer as it comes: batches of 10."""

from __future__ import annotations

from typing import Final

from benchmarks.board import Board
from benchmarks.peers.python.adapter import Adapter
from benchmarks.peers.python.pgqueuer_tuned import PgQueuerAdapter

BATCH: Final = 10


def make(url: str, board: Board) -> Adapter:
    return PgQueuerAdapter(url, board, batch=BATCH)
