"""The thread of a store that reads: short transactions on a connection that cannot write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ropewalk.backends.sql.connection_thread import Servant
from ropewalk.backends.sql.requests import Request, deliver
from ropewalk.backends.sqlite.faults import breaks_connection, translated
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.opening import open_reader
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.ports.runtime import Runtime


class Reader(Servant):
    def __init__(self, runtime: Runtime, path: Path) -> None:
        self._path = path
        self._db: sqlite.Connection | None = None
        super().__init__(runtime, "ropewalk-sqlite-reader")

    async def _serve(self, requests: list[Request[Any]]) -> None:
        for request in requests:
            with self._busy:
                self._answer(request)
            deliver([request])  # a quick one does not wait for a slow one behind it

    def _answer(self, request: Request[Any]) -> None:
        try:
            if self._db is None:
                self._db = open_reader(self._path)
            self._db.execute("BEGIN")
            try:
                request.succeed(request.work(Tx(self._db, self._runtime.now())))
            finally:
                self._db.execute("ROLLBACK")
        except Exception as error:
            request.fail(translated(error, self._path))
            if breaks_connection(error):
                self._disconnect()

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()
