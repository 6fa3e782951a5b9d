"""A store in one SQLite file, which survives power loss. All writes share one thread and its commits, and all reads
share another one (connections.py).

The verbs are those of every SQL store (backends/sql). This package has the statements (`sql/`), the connections and the
hints between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ropewalk.backends.sql import queries
from ropewalk.backends.sql.store import SqlStore
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite.checkpoint import give_space_back
from ropewalk.backends.sqlite.connections import Reader, Writer
from ropewalk.backends.sqlite.diagnosis import facts, settings_of_writer, trouble
from ropewalk.backends.sqlite.findings import findings_of
from ropewalk.backends.sqlite.handler_transactions import SqliteTransaction
from ropewalk.backends.sqlite.library import translated
from ropewalk.backends.sqlite.listening import Marks
from ropewalk.backends.sqlite.notifier import FileNotifier
from ropewalk.backends.sqlite.opening import ddl_of, migrate, schema_of
from ropewalk.backends.sqlite.user_transactions import SqliteJoining
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import InvalidInput
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Examination
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.ports.store.migrations import SchemaState
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import Join, UserConnection, UserTransaction

T = TypeVar("T")


class SqliteStore(SqlStore):
    """The store in the file at `path`, which is created if it does not exist. Nothing is opened before it is needed."""

    def __init__(
        self, path: str | Path, runtime: Runtime, *, allow_weaker_durability: bool = False, migrate: bool = True
    ) -> None:
        super().__init__(runtime)
        self._path = _checked(path)
        self._writer = Writer(runtime, self._path, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
        self._writer.on_aside = self._aside.append
        self._reader = Reader(runtime, self._path)
        self._notifier = FileNotifier(self._path, runtime, self._marks)
        self._joining = SqliteJoining(self._path, runtime, allow_weaker_durability=allow_weaker_durability)
        self._opened = False

    @property
    def name(self) -> str:
        return "sqlite"

    @property
    def durability(self) -> Durability:
        return Durability.D2 if self._writer.weakness is None else Durability.D1

    @property
    def notifier(self) -> Notifier:
        return self._notifier

    def transaction(self, limit_us: Span) -> UserTransaction:
        return SqliteTransaction(self._path, self._runtime, limit_us=limit_us)

    async def join(self, connection: UserConnection, submissions: Sequence[Submission]) -> Join:
        return self._joining.join(connection)

    async def open(self) -> None:
        if not self._opened:
            await self._write(lambda _: None)
            self._opened = True
            self._notifier.resume()

    async def close(self) -> None:
        self._opened = False
        await self._notifier.pause()
        await self._reader.stop()
        await self._writer.stop()  # The writer is last, because closing the last connection empties the log.

    async def clock(self) -> Instant:
        return self._runtime.now()

    async def schema(self) -> SchemaState:
        return await self._in_thread(schema_of)

    async def migrate(self) -> SchemaState:
        before = await self.schema()
        await self._in_thread(migrate)
        return before

    async def ddl(self) -> str:
        return await self._in_thread(ddl_of)

    async def _in_thread(self, work: Callable[[Path], T]) -> T:
        try:
            return await self._runtime.in_thread(lambda: work(self._path))
        except Exception as error:
            raise translated(error, self._path) from error

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        pruned = await super().prune(retention, limit)
        await self._write(give_space_back)
        return pruned

    async def examine(self, *, deep: bool = False) -> Examination:
        settings = await self._write(settings_of_writer)
        found = await self._read(trouble) if deep else None
        findings = findings_of(await self._runtime.in_thread(lambda: facts(self._path, settings, found)))
        return Examination(now=self._runtime.now(), work=await self._read(queries.open_work), findings=findings)

    async def _marks(self) -> Marks | None:
        return await self._reader.ask(queries.change_marks) if self._opened else None

    async def _write(self, work: Callable[[Tx], T]) -> T:
        return await self._writer.ask(work)

    async def _read(self, work: Callable[[Tx], T]) -> T:
        await self.open()  # A reader cannot create or migrate the file.
        return await self._reader.ask(work)


def _checked(path: str | Path) -> Path:
    if str(path) in ("", ":memory:"):
        raise InvalidInput(
            f"path={str(path)!r} names no file: use the memory store (memory://) for jobs that need not survive",
            field="path",
        )
    return Path(path).resolve()  # Like SQLite, which writes its log beside the real file.
