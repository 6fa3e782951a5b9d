"""A store in a journal: every change is made in memory, appended to the file, and only then answered.

Opening it makes the same changes again, each at the time at which it was made the first time.
"""

# mypy: disable-error-code="no-any-return"
# An answer has the type of its verb, which the journal does not know.

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import structs

from ropewalk import OutcomeUnknown
from ropewalk.backends.memory import MemoryStore
from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.logs import LogLine
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, LOGS, Capability
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.core import Durability, Store
from ropewalk.ports.store.diagnosis import Backlog, DiagnosisStore, Examination
from ropewalk.ports.store.leases import HeldJobs, Note, NoteAnswer, Renewal, Renewed, Settlements, WorkerCard
from ropewalk.ports.store.logs import LogStore
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.ports.store.operations import Cancellations, Deletion, Purged, RetryAnswer, UpdateAnswer
from ropewalk.ports.store.reading import Page, QueueInfo, Snapshot, StoredHistory
from ropewalk.ports.store.submission import Submission, SubmitAnswer
from ropewalk_journal.findings import WAKE_UPS, facts, findings_of
from ropewalk_journal.journal import Journal

T = TypeVar("T")

CHANGES: Final[dict[str, Any]] = {
    "submit": tuple[list[Submission]],
    "cancel": tuple[str, list[str], str | None, bool],
    "retry": tuple[str, list[str], RetryRequest],
    "update": tuple[str, str, UpdateRequest],
    "delete": tuple[str, list[str]],
    "purge": tuple[str, list[str], bool],
    "register": tuple[WorkerCard],
    "unregister": tuple[str],
    "claim": tuple[ClaimRequest],
    "renew": tuple[str, list[Renewal]],
    "settle": tuple[str, list[Settlement]],
    "note": tuple[Note],
    "sweep": tuple[int, Instant | None],
    "prune": tuple[Retention, int],
    "once": tuple[str, str, Span, str | None],
    "pause": tuple[str, str, bool],
    "drain": tuple[str],
}
"""The verbs that change something, each with the types of its arguments, which an entry of the journal contains."""


class Replayed:
    """The clock of the memory store, which shows the time of the change that is being made or played back."""

    def __init__(self) -> None:
        self.at: Instant = 0

    def now(self) -> Instant:
        return self.at


class JournalStore(Store, LogStore, DiagnosisStore):
    """`path` names the file, which is created when it is missing. Nothing is opened before `open`."""

    def __init__(self, path: str | Path, runtime: Runtime) -> None:
        self._path = Path(path).resolve()
        self._runtime = runtime
        self._lock = Lock()
        self._clock = Replayed()
        self._memory = self._empty()
        self._notifier = self._memory.notifier
        self._journal: Journal | None = None

    @property
    def name(self) -> str:
        return "journal"

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        return frozenset({LOGS, DIAGNOSIS})

    @property
    def durability(self) -> Durability:
        return Durability.D2

    @property
    def notifier(self) -> Notifier:
        return self._notifier

    async def open(self) -> None:
        await self._runtime.in_thread(self._open)

    async def close(self) -> None:
        await self._runtime.in_thread(self._close)

    # ── changes

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        return await self._change("submit", submissions)

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        return await self._change("cancel", tenant, ids, reason, force)

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        return await self._change("retry", tenant, ids, request)

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        return await self._change("update", tenant, job_id, request)

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        return await self._change("delete", tenant, ids)

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        return await self._change("purge", tenant, ids, together)

    async def register(self, card: WorkerCard) -> None:
        await self._change("register", card)

    async def unregister(self, owner: str) -> None:
        await self._change("unregister", owner)

    async def claim(self, request: ClaimRequest) -> Claimed:
        return await self._change("claim", request)

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        return await self._change("renew", owner, renewals)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        return await self._change("settle", owner, settlements)

    async def note(self, note: Note) -> NoteAnswer:
        return await self._change("note", note)

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        return await self._change("sweep", limit, take_back_until)

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        return await self._change("prune", retention, limit)

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        return await self._change("once", tenant, key, ttl_us, by)

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        await self._change("pause", tenant, queue, paused)

    async def drain(self, owner: str) -> bool:
        return await self._change("drain", owner)

    # ── reading

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot:
        return await self._look(lambda memory: memory.get(tenant, ids))

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        return await self._look(lambda memory: memory.search(tenant, wanted, order=order, cursor=cursor, limit=limit))

    async def count(self, tenant: str, wanted: Filter, *, limit: int | None = None) -> int:
        return await self._look(lambda memory: memory.count(tenant, wanted, limit=limit))

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None:
        return await self._look(lambda memory: memory.history(tenant, job_id))

    async def queues(self, tenant: str) -> list[QueueInfo]:
        return await self._look(lambda memory: memory.queues(tenant))

    async def held(self, owner: str) -> HeldJobs:
        return await self._look(lambda memory: memory.held(owner))

    async def workers(self) -> list[WorkerCard]:
        return await self._look(lambda memory: memory.workers())

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        return await self._look(lambda memory: memory.log(tenant, job_id))

    async def clock(self) -> Instant:
        return self._runtime.now()

    # ── what it says about itself

    async def examine(self, *, deep: bool = False) -> Examination:
        examination = await self._look(lambda memory: memory.examine(deep=deep))
        findings = findings_of(await self._runtime.in_thread(lambda: facts(self._path)))
        return structs.replace(examination, findings=findings, wake_ups=WAKE_UPS)

    async def backlog(self) -> list[Backlog]:
        return await self._look(lambda memory: memory.backlog())

    async def ahead_of(self, job: JobRecord) -> int:
        return await self._look(lambda memory: memory.ahead_of(job))

    # ── how

    async def _change(self, verb: str, *arguments: Any) -> Any:
        return await self._runtime.in_thread(lambda: self._changed(verb, arguments))

    async def _look(self, reading: Callable[[MemoryStore], Coroutine[Any, Any, T]]) -> T:
        def look() -> T:
            with self._lock:
                self._opened()
                self._clock.at = self._runtime.now()
                return _answer(reading(self._memory))

        return await self._runtime.in_thread(look)

    def _changed(self, verb: str, arguments: tuple[Any, ...]) -> Any:
        with self._lock:
            journal = self._opened()
            self._clock.at = self._runtime.now()
            entry = msgspec.msgpack.encode((self._clock.at, verb, arguments))
            answer = _answer(_asked(self._memory, verb, arguments))
            try:
                journal.append(entry)
            except OSError as error:
                self._forget()  # the file decides, once it is read again
                raise OutcomeUnknown(f"{self._path}: {error.strerror}: the change may or may not be there") from error
            return answer

    def _open(self) -> None:
        with self._lock:
            self._opened()

    def _opened(self) -> Journal:
        """Open the journal and make every change in it again."""
        if self._journal is None:
            journal = Journal(self._path)
            try:
                for entry in journal.entries():
                    self._clock.at, verb, given = msgspec.msgpack.decode(entry)
                    _answer(_asked(self._memory, verb, msgspec.convert(given, CHANGES[verb], strict=False)))
            except BaseException:
                journal.close()
                self._memory = self._empty()
                raise
            self._journal = journal
        return self._journal

    def _close(self) -> None:
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            self._memory = self._empty()

    def _empty(self) -> MemoryStore:
        return MemoryStore(cast("Runtime", self._clock))  # it asks a runtime for the time, and for nothing else


def _asked(memory: MemoryStore, verb: str, arguments: tuple[Any, ...]) -> Coroutine[Any, Any, Any]:
    match verb, arguments:
        case "cancel", (tenant, ids, reason, force):
            return memory.cancel(tenant, ids, reason=reason, force=force)
        case "purge", (tenant, ids, together):
            return memory.purge(tenant, ids, together=together)
        case "sweep", (limit, take_back_until):
            return memory.sweep(limit, take_back_until=take_back_until)
        case "once", (tenant, key, ttl_us, by):
            return memory.once(tenant, key, ttl_us, by=by)
        case "pause", (tenant, queue, paused):
            return memory.pause(tenant, queue, paused=paused)
        case _:
            return getattr(memory, verb)(*arguments)


def _answer(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the memory store to its end; it never waits, so one step is enough."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the memory store waited for something")
