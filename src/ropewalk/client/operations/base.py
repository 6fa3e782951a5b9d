"""The base class of all operations of a client, which belong to one tenant of one app, and the helper for operations on
many jobs, which does bounded work in each transaction and changes no job twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

from ropewalk.client.app_state import AppState
from ropewalk.client.filter import Filter, in_domain
from ropewalk.client.views.answers import BulkResult
from ropewalk.client.views.jobs import Describer
from ropewalk.domain import checks
from ropewalk.domain.bounds import check_name
from ropewalk.domain.jobs.operations import CancelStatus
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.search import Order
from ropewalk.errors import BeyondTenant, NotFound, OutcomeUnknown, RopewalkError, StoreUnavailable
from ropewalk.observe.publish import Change, publish
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.operations import CancelAnswer

T = TypeVar("T")


class TenantOperations:
    """The operations of one tenant. They reach no other tenant unless `_store_wide` allows it."""

    _store_wide = False

    def __init__(self, app_state: AppState, tenant: str) -> None:
        self._app_state = app_state
        self._tenant = tenant
        self._describe = Describer(app_state.registry, app_state.codec, app_state.secret_keys)

    def _refuse_beyond(self, what: str) -> None:
        """Raises BeyondTenant if this client must not do what concerns other tenants."""
        if not self._store_wide:
            raise BeyondTenant(f"{what} concerns tenants other than {self._tenant!r}: use the app itself")

    async def _store(self) -> Store:
        """Returns the store, which is open."""
        await self._app_state.open()
        return self._app_state.store

    async def _record(self, job_id: str) -> tuple[JobRecord, int]:
        """Returns the record of a job and the store's time at which it was read. Raises NotFound."""
        checks.text(job_id, "job_id")
        read = await (await self._store()).get(self._tenant, [job_id])
        job = read.jobs.get(job_id)
        if job is None:
            raise missing(job_id)
        return job, read.now

    def _name(self, value: object, field: str) -> str:
        """Checks a name that is about to be stored, and returns it."""
        return check_name(value, field, self._app_state.bounds)

    async def _cancel(self, ids: Sequence[str], *, reason: str | None, force: bool) -> list[CancelAnswer]:
        cancelled = await (await self._store()).cancel(self._tenant, ids, reason=reason, force=force)
        ended = tuple(answer.id for answer in cancelled.answers if answer.status is CancelStatus.CANCELLED)
        self._app_state.store.notifier.publish(Hint(finished=ended, control=True))
        self._publish(await self._cancelled(ended), cancelled.consequences)
        return cancelled.answers

    async def _cancel_into(self, result: BulkResult, ids: Sequence[str], *, reason: str | None, force: bool) -> None:
        """Cancel these jobs, and count in `result` what became of each."""
        for answer in await self._cancel(ids, reason=reason, force=force):
            match answer.status:
                case CancelStatus.CANCELLED | CancelStatus.CANCEL_REQUESTED:
                    result.done += 1
                case CancelStatus.ALREADY_COMPLETE:
                    result.skip(answer.id, answer.status.value, f"the job has already ended ({answer.previous})")
                case CancelStatus.NOT_FOUND:
                    result.miss(answer.id)

    async def _cancelled(self, ids: Sequence[str]) -> list[Change]:
        """Returns the changes of jobs that were just cancelled. They are read from the store for metrics and events,
        which need their types; without either, nothing is read."""
        events = self._app_state.events
        if not ids or (events.meter is None and not events.has_listeners):
            return []
        try:
            read = await self._app_state.store.get(self._tenant, ids)
        except RopewalkError as error:
            events.report(error, "cancelled")
            return []
        return [Change(job, Move.CANCEL, job.error) for job in read.jobs.values()]

    def _publish(self, news: Iterable[Change], consequences: Consequences, *, control: bool = False) -> None:
        app_state = self._app_state
        publish(
            news,
            store=app_state.store,
            events=app_state.events,
            runtime=app_state.runtime,
            consequences=consequences,
            control=control,
        )


REPEATED_AFTER_SECONDS: Final = (0.1, 0.4, 1.6)
"""The waits before a call whose answer was lost is repeated."""


async def repeated(call: Callable[[str], Awaitable[T]], runtime: Runtime, call_id: str | None) -> T:
    """Calls the store, and repeats the call if its answer was lost. All calls have the same id, so that the store does
    only once what they ask for.

    The id is the one of the caller, or a new one. If no answer comes, OutcomeUnknown is raised, which names the id.
    """
    once_id = runtime.new_id() if call_id is None else call_id
    try:
        return await call(once_id)
    except OutcomeUnknown as error:
        lost = error
    for seconds in REPEATED_AFTER_SECONDS:
        await runtime.sleep(seconds)
        try:
            return await call(once_id)
        except StoreUnavailable as error:  # The first call may still have had its effect.
            lost.__context__ = error
    raise OutcomeUnknown(f"{lost} (id={once_id!r})") from lost


def missing(job_id: str) -> NotFound:
    """Returns the error about a job that does not exist for the tenant."""
    return NotFound(f"no job {job_id!r} for this tenant (never submitted, or deleted after its retention)")


def check_cancel(reason: object, *, force: object) -> None:
    """Raises InvalidInput if an option of a cancellation does not fit."""
    checks.message_or_none(reason, "reason")
    checks.flag(force, "force")


BATCH: Final = 1000
"""An operation on many jobs changes this many in one transaction at most."""

Action: TypeAlias = Callable[[Sequence[str], BulkResult], Awaitable[None]]


async def in_bulk(store: Store, tenant: str, jobs: Iterable[str] | Filter, act: Action, *, dry_run: bool) -> BulkResult:
    """Calls `act` with the ids of the jobs, a batch at a time, and returns the counts. With `dry_run` the jobs are only
    counted."""
    checks.flag(dry_run, "dry_run")
    named = jobs if isinstance(jobs, Filter) else checks.names(jobs, "jobs")
    result = BulkResult()
    async for ids in _chunks(store, tenant, named):
        result.requested += len(ids)
        if not dry_run:
            await act(ids, result)
    return result


async def _chunks(store: Store, tenant: str, jobs: Sequence[str] | Filter) -> AsyncIterator[Sequence[str]]:
    if not isinstance(jobs, Filter):
        for start in range(0, len(jobs), BATCH):
            yield jobs[start : start + BATCH]
        return
    cursor = None
    while True:
        page = await store.search(tenant, in_domain(jobs), order=Order.CREATED_ASC, cursor=cursor, limit=BATCH)
        if page.jobs:
            yield [job.id for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            return
