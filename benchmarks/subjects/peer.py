"""A peer under measurement: a process of its own submits; its store and the board are counted from here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Final

import psycopg

from benchmarks.board import Board
from benchmarks.pace import Pace, Submitted
from benchmarks.peers.known import Peer
from benchmarks.peers.process import Caller
from benchmarks.subjects.subject import Subject

SQLITE: Final = "sqlite:///"


class PeerSubject(Subject):
    def __init__(self, peer: Peer, url: str, board: Board) -> None:
        self._peer, self._url, self._board = peer, url, board

    async def open(self) -> None:
        self._caller = await Caller.start(self._peer, self._url, self._board.path)

    async def close(self) -> None:
        await self._caller.leave()

    async def hand_in(self, how: Pace, numbers: range) -> Submitted:
        return await self._caller.submit(how, numbers)

    async def unfinished(self) -> int:
        """A connection for each look: looks are few, after the last handler started."""
        if self._url.startswith(SQLITE):
            with closing(sqlite3.connect(self._url.removeprefix(SQLITE), timeout=30)) as file:
                return int(file.execute(self._peer.unfinished).fetchone()[0])
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            answer = await connection.execute(self._peer.unfinished)
            return int((await answer.fetchone() or (0,))[0])

    async def submitted(self) -> int:
        """Many peers delete what is done: what is left there, and what ran."""
        return self._board.handled + await self.unfinished()

    async def completed(self) -> int:
        return self._board.handled - await self.unfinished()
