"""Which subject stands for which kind on which store, and which program its worker processes run.

A store is named by its URL; everything a run leaves behind is in the directory or the database it names.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.board import Board
from benchmarks.floors.memory import MemoryFloor
from benchmarks.floors.postgres import PostgresFloor
from benchmarks.floors.sqlite import SqliteFloor
from benchmarks.peers import known
from benchmarks.peers.process import command
from benchmarks.subjects.floor import FloorSubject
from benchmarks.subjects.peer import PeerSubject
from benchmarks.subjects.queue import Ropewalk
from benchmarks.subjects.subject import Kind, Local, Subject

Command: TypeAlias = list[str]
SQLITE: Final = "sqlite:///"


def make(kind: Kind, url: str, board: Board) -> Subject:
    peer = known.PEERS.get(kind)
    return make_local(kind, url, board) if peer is None else PeerSubject(peer, url, board)


def make_local(kind: Kind, url: str, board: Board) -> Local:
    """ropewalk or a floor: what a process of this environment can be."""
    if kind == "ropewalk":
        return Ropewalk(url, board)
    if url.startswith("memory:"):
        return FloorSubject(MemoryFloor, board)
    if url.startswith(SQLITE):
        return FloorSubject(lambda handler: SqliteFloor(Path(url.removeprefix(SQLITE)), handler), board)
    return FloorSubject(lambda handler: PostgresFloor(url, handler), board)


def worker_command(kind: Kind, url: str, board: Path, index: int) -> Command:
    peer = known.PEERS.get(kind)
    if peer is not None:
        return command(peer, url, board, index)
    return [sys.executable, "-m", "benchmarks.member", kind, url, str(board), str(index)]
