"""What every verb stands on: one tenant of one app's store.

One action over many jobs: bounded work per transaction, nothing touched twice, a dry run that touches nothing.
"""

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
    """What belongs to one tenant. Nothing here reaches beyond it, unless `_store_wide` says that it may."""

    _store_wide = False

    def __init__(self, app_state: AppState, tenant: str) -> None:
        self._app_state = app_state
        self._tenant = tenant
        self._describe = Describer(app_state.registry, app_state.codec, app_state.secret_keys)

    def _refuse_beyond(self, what: str) -> None:
        """Raises BeyondTenant where this client must not do what concerns other tenants."""
        if not self._store_wide:
            raise BeyondTenant(f"{what} concerns tenants other than {self._tenant!r}: use the app itself")

    async def _store(self) -> Store:
        await self._app_state.open()
        return self._app_state.store

    async def _record(self, job_id: str) -> tuple[JobRecord, int]:
        checks.text(job_id, "job_id")
        read = await (await self._store()).get(self._tenant, [job_id])
        job = read.jobs.get(job_id)
        if job is None:
            raise missing(job_id)
        return job, read.now

    def _name(self, value: object, field: str) -> str:
        """A name that is about to be stored."""
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
        """What there is to tell of jobs that were just cancelled: whoever counts or listens asks for their type."""
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


async def repeated(call: Callable[[str], Awaitable[T]], runtime: Runtime, given: str | None) -> T:
    """Ask the store, and ask again where the answer was lost: under one id, so that it happens once.

    The id is the caller's, or a fresh one. Raises OutcomeUnknown, naming it, where no answer comes.
    """
    once_id = runtime.new_id() if given is None else given
    try:
        return await call(once_id)
    except OutcomeUnknown as error:
        lost = error
    for seconds in REPEATED_AFTER_SECONDS:
        await runtime.sleep(seconds)
        try:
            return await call(once_id)
        except StoreUnavailable as error:  # what was asked first may still have happened
            lost.__context__ = error
    raise OutcomeUnknown(f"{lost} (id={once_id!r})") from lost


def missing(job_id: str) -> NotFound:
    return NotFound(f"no job {job_id!r} for this tenant (never submitted, or deleted after its retention)")


def check_cancel(reason: object, *, force: object) -> None:
    checks.message_or_none(reason, "reason")
    checks.flag(force, "force")


BATCH: Final = 1000

Action: TypeAlias = Callable[[Sequence[str], BulkResult], Awaitable[None]]


async def in_bulk(store: Store, tenant: str, jobs: Iterable[str] | Filter, act: Action, *, dry_run: bool) -> BulkResult:
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
