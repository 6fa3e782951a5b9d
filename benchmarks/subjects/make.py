"""Which subject stands for which store. Everything a run leaves behind is in its directory."""

from __future__ import annotations

from pathlib import Path

from benchmarks.board import Board
from benchmarks.floors.memory import MemoryFloor
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.subjects.floor import FloorSubject
from benchmarks.subjects.queue import Ropewalk
from benchmarks.subjects.subject import Kind, StoreName, Subject


def make(kind: Kind, store: StoreName, directory: Path, board: Board) -> Subject:
    file = directory / f"{kind}.db"
    if kind == "ropewalk":
        return Ropewalk("memory://" if store == "memory" else f"sqlite:///{file}", board)
    return FloorSubject(MemoryFloor if store == "memory" else lambda handler: SqliteFloor(file, handler), board)
