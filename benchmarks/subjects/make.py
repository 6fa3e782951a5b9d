"""Which subject stands for which store. Everything a run leaves behind is in its directory."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from benchmarks.board import Board
from benchmarks.floors.memory import MemoryFloor
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.subjects.floor import FloorSubject
from benchmarks.subjects.queue import Ropewalk
from benchmarks.subjects.subject import Kind, StoreName, Subject


def make(kind: Kind, store: StoreName, directory: Path, board: Board) -> Subject:
    file = directory / f"{kind}.db"
    match kind, store:
        case "ropewalk", "memory":
            return Ropewalk("memory://", board)
        case "ropewalk", "sqlite":
            return Ropewalk(f"sqlite:///{file}", board)
        case "floor", "memory":
            return FloorSubject(MemoryFloor, board)
        case "floor", "sqlite":
            return FloorSubject(lambda handler: SqliteFloor(file, handler), board)
        case unknown:
            assert_never(unknown)
