"""A waiter waits until a job, a group or a chain has ended. A hint wakes it; a slow poll makes up for lost hints.

While the store is away, waits go on for a minute and then raise StoreUnavailable. Any other error is raised at once.

All waits for things of one kind on one event loop share one check of the store, however many there are. The three
checks (JobCompletion, GroupCompletion, ChainCompletion) know what it means that a thing of their kind has ended.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from ropewalk.client.awaited_groups import AwaitedGroups
from ropewalk.domain.jobs.flags import CONTINUED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.errors import NotFound, StoreUnavailable, WaitTimeout
from ropewalk.ports.notifier import Hint, Notifier, Unsubscribe
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.workflows import GroupRecord
from ropewalk.runtime.wake import Wake

POLL_SECONDS: Final = 0.5
"""Everything that somebody waits for is checked this often, even without a hint."""
AWAY_SECONDS_MAX: Final = 60.0
"""The store may be away for this long, counted from the first check that failed, before waits raise."""
IDS_MAX: Final = 500
"""One check asks for this many things at most."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_Key = tuple[str, str]


class CheckAnswer(Struct, Generic[T_co], frozen=True):
    """What a check found out about one thing. `answer` is None while the thing has not ended."""

    answer: T_co | None = None
    watch: str | None = None
    """The id of another job whose hints concern this thing: the last member of a chain."""
    gone: str | None = None
    """The message of a NotFound, if the thing has ended but its answer no longer exists."""


class CompletionCheck(Protocol[T_co]):
    """A function that asks the store whether things of one kind have ended."""

    what: str
    """The word for the kind in messages: job, group or chain."""

    def __call__(self, tenant: str, ids: list[str]) -> Awaitable[Mapping[str, CheckAnswer[T_co]]]:
        """Returns the answers about the things that exist, by id."""
        ...


class WaitBound(Protocol):
    """Waits for an answer in place of the waiter, and raises if the answer can never come. Rehearsals set one."""

    async def __call__(self, answer: asyncio.Future[T], /) -> T: ...


class Waiter(Generic[T]):
    """All waits for things of one kind on one event loop."""

    def __init__(
        self, check: CompletionCheck[T], notifier: Notifier, runtime: Runtime, bound: WaitBound | None = None
    ) -> None:
        self._completion = check
        self._bound = bound
        self._notifier = notifier
        self._runtime = runtime
        self._waiting: dict[_Key, list[asyncio.Future[T]]] = defaultdict(list)
        """The futures of the waits, by (tenant, id)."""
        self._watched: dict[_Key, str] = {}
        """The other id whose hints concern a thing (CheckAnswer.watch)."""
        self._hinted: set[str] = set()
        self._wake = Wake(runtime)
        self._looking = False
        self._check_all = False
        self._away_since: float | None = None
        """The time of the first check that failed since the last answer of the store; None if the last check was
        answered."""
        self._unsubscribe: Unsubscribe | None = None

    async def wait(self, tenant: str, wanted: str, timeout_seconds: float | None) -> T:
        """Waits until the thing has ended and returns the answer of the check. Raises NotFound and WaitTimeout."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        key = (tenant, wanted)
        self._waiting[key].append(answer)
        self._look_for(wanted)
        timer = None
        if timeout_seconds is not None:
            timer = self._runtime.after(timeout_seconds, lambda: self._time_is_up(answer, wanted, timeout_seconds))
        try:
            return await (answer if self._bound is None else self._bound(answer))
        finally:
            if timer is not None:
                timer.cancel()
            self._forget(key, answer)

    def _look_for(self, wanted: str) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._notifier.subscribe(self._on_hint)
        self._hinted.add(wanted)
        self._wake.set()
        if not self._looking:
            self._looking = True
            self._runtime.spawn(self._look(), name=f"ropewalk-{self._completion.what}-waiter")

    def _on_hint(self, hint: Hint) -> None:
        """Wakes the waiter if a hint says that one of its things may have ended. Any thread may call this."""
        if hint.many or not self._ids.isdisjoint(hint.finished):
            if hint.many:
                self._check_all = True
            self._hinted.update(hint.finished)
            self._wake.set_threadsafe()

    @property
    def _ids(self) -> set[str]:
        return {wanted for _, wanted in list(self._waiting)}.union(self._watched.copy().values())

    async def _look(self) -> None:
        try:
            while self._waiting:
                woken = await self._wake.wait(POLL_SECONDS)
                await self._check(everything=not woken)
        finally:
            self._looking = False
            self._away_since = None  # Without a wait nothing is checked, so this says nothing about the next one.
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None

    async def _check(self, *, everything: bool) -> None:
        hinted, self._hinted = self._hinted, set()
        everything, self._check_all = everything or self._check_all, False
        by_tenant: dict[str, list[str]] = defaultdict(list)
        for key in list(self._waiting):
            if everything or key[1] in hinted or self._watched.get(key) in hinted:
                by_tenant[key[0]].append(key[1])
        for tenant, ids in by_tenant.items():
            for start in range(0, len(ids), IDS_MAX):
                await self._check_some(tenant, ids[start : start + IDS_MAX])

    async def _check_some(self, tenant: str, ids: list[str]) -> None:
        try:
            found = await self._completion(tenant, ids)
        except Exception as error:
            if isinstance(error, StoreUnavailable) and self._may_come_back():
                self._hinted.update(ids)  # They are checked again with the next poll or hint.
                return
            for wanted in ids:
                self._answer((tenant, wanted), error)
            return
        self._away_since = None
        for wanted in ids:
            result = found.get(wanted)
            if result is None:
                missing = NotFound(f"no {self._completion.what} {wanted!r} (never submitted here, or deleted)")
                self._answer((tenant, wanted), missing)
            elif result.gone is not None:
                self._answer((tenant, wanted), NotFound(result.gone))
            elif result.answer is not None:
                self._answer((tenant, wanted), result.answer)
            elif result.watch is not None and (tenant, wanted) in self._waiting:
                self._watch((tenant, wanted), result.watch)

    def _may_come_back(self) -> bool:
        """Records that the store is away. Returns whether waits should go on."""
        now = self._runtime.monotonic()
        if self._away_since is None:
            self._away_since = now
        return now - self._away_since < AWAY_SECONDS_MAX

    def _watch(self, key: _Key, other: str) -> None:
        """Lets hints about another job wake the wait for this thing. The thing is checked once more, because a hint may
        have come before."""
        if self._watched.get(key) != other:
            self._watched[key] = other
            self._hinted.add(other)
            self._wake.set()

    def _answer(self, key: _Key, answer: T | Exception) -> None:
        for future in self._waiting.get(key, ()):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _forget(self, key: _Key, answer: asyncio.Future[T]) -> None:
        futures = self._waiting[key]
        futures.remove(answer)
        if not futures:
            del self._waiting[key]
            self._watched.pop(key, None)
            if not self._waiting:
                self._wake.set()

    def _time_is_up(self, answer: asyncio.Future[T], wanted: str, seconds: float) -> None:
        if not answer.done():
            answer.set_exception(WaitTimeout(f"{self._completion.what} {wanted} did not end within {seconds:g} s"))


class JobCompletion:
    """Checks whether jobs have ended. The answer is the record of the job."""

    what = "job"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[JobRecord]]:
        found = (await self._store.get(tenant, ids)).jobs
        return {job_id: CheckAnswer(job if job.terminal else None) for job_id, job in found.items()}


class ClosedGroupRecord(Struct, frozen=True):
    """A closed group: its root job, and its record, which is None if the group contains only the root."""

    root: JobRecord
    record: GroupRecord | None


class GroupCompletion:
    """Checks whether groups have closed. A group without a record contains only its root.

    The store is informed of the wait first, so that the group is not reported as an orphan group.
    """

    what = "group"

    def __init__(self, store: Store, awaited: AwaitedGroups) -> None:
        self._store = store
        self._groups = WORKFLOWS.of(store)
        self._awaited = awaited

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[ClosedGroupRecord]]:
        roots = (await self._store.get(tenant, ids)).jobs
        await self._awaited.inform(self._groups, tenant, list(roots.values()))
        # The records are read after the roots, because a root that has ended queues no more jobs.
        ended = [job_id for job_id, job in roots.items() if job.terminal]
        records = await self._groups.groups(tenant, ended) if ended else {}
        return {job_id: CheckAnswer(_closed(job, records.get(job_id))) for job_id, job in roots.items()}


class ChainCompletion:
    """Checks whether chains have ended, which they do with a member that ends without a continuation. The answer is the
    record of that member; until then the last member is watched."""

    what = "chain"

    def __init__(self, store: Store) -> None:
        self._store = WORKFLOWS.of(store)

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[JobRecord]]:
        answers: dict[str, CheckAnswer[JobRecord]] = {}
        for job_id in ids:
            members = await self._store.chain(tenant, job_id, last=1)
            if members:
                answers[job_id] = _end(job_id, members[-1])
        return answers


def _end(job_id: str, last: JobRecord) -> CheckAnswer[JobRecord]:
    if last.flags & CONTINUED:
        gone = f"the last job of the chain of {job_id} is gone (deleted, or pruned after its retention), and its result"
        return CheckAnswer(gone=gone)
    return CheckAnswer(last) if last.terminal else CheckAnswer(watch=last.id)


def _closed(root: JobRecord, record: GroupRecord | None) -> ClosedGroupRecord | None:
    if not root.terminal or (record is not None and record.closed_at is None):
        return None
    return ClosedGroupRecord(root, record)
