"""Removing finished jobs, never from under somebody who still needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ropewalk.client.filter import Filter
from ropewalk.client.operations.base import Bound, missing
from ropewalk.client.operations.bulk import in_bulk
from ropewalk.client.views.answers import BulkResult
from ropewalk.client.views.graph_reading import UNFINISHED, dependants_of, jobs_of
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter as Wanted
from ropewalk.errors import Conflict
from ropewalk.ports.store.messages import Deletion


class Deleting(Bound):
    async def delete(self, job_id: str) -> None:
        """Remove a finished job and its history. Raises Conflict while it has not ended, or while others need it."""
        answer = (await (await self._store()).delete(self._tenant, [job_id]))[job_id]
        match answer:
            case Deletion.DELETED:
                return
            case Deletion.NOT_FOUND:
                raise missing(job_id)
            case Deletion.NOT_TERMINAL:
                raise Conflict(f"job {job_id} is not finished: cancel it first")
            case Deletion.IN_USE:
                raise await self._in_use([job_id])

    async def delete_many(self, jobs: Sequence[str] | Filter, *, dry_run: bool = False) -> BulkResult:
        """Those that are not finished, or that others need, are skipped."""

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for answer in (await self._core.store.delete(self._tenant, ids)).values():
                result.tally(done=answer is Deletion.DELETED, missing=answer is Deletion.NOT_FOUND)

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def delete_chain(self, job_id: str, *, cascade: bool = False) -> None:
        """Remove every job of the chain this one is in. Raises Conflict while one runs, or while others need it.

        cascade: what waits in the chain, or for it, is cancelled and removed, too.
        """
        store = await self._store()
        members = await store.chain(self._tenant, job_id)
        if not members:
            raise missing(job_id)
        outside = await dependants_of(store, self._tenant, members)
        doomed = [*members, *outside]
        if cascade:
            _refuse([job for job in doomed if job.status is Status.RUNNING], "runs: cancel it first")
            waiting = [job.id for job in doomed if not job.terminal]
            await self._cancel(waiting, reason=f"the chain of {job_id} is deleted", force=False)
        else:
            _refuse([job for job in members if not job.terminal], "has not ended: cancel it first, or say cascade=True")
            _refuse(outside, "depends on this chain and has not ended: cancel it first, or say cascade=True")
        answers = await store.delete(self._tenant, [job.id for job in doomed])
        kept = [each for each, answer in answers.items() if answer in (Deletion.IN_USE, Deletion.NOT_TERMINAL)]
        if kept:
            raise await self._in_use(kept)

    async def _in_use(self, ids: Sequence[str]) -> Conflict:
        """Who needs them: what depends on them, or what was queued under them and has not ended."""
        store = self._core.store
        jobs = list((await store.get(self._tenant, ids)).jobs.values())
        users = await dependants_of(store, self._tenant, jobs)
        for job_id in ids:
            under = Wanted(parent_id=job_id, states=UNFINISHED)
            users += [job async for job, _ in jobs_of(store, self._tenant, under, limit=3)]
        told = _named(users) or "something under it has not ended"
        return Conflict(f"{_plural(ids)} is still needed by {told}: delete it when they have ended")


def _refuse(jobs: Sequence[JobRecord], why: str) -> None:
    if jobs:
        raise Conflict(f"{_named(jobs)} {why}")


def _named(jobs: Sequence[JobRecord]) -> str:
    return _plural([f"{job.id} ({job.type})" for job in jobs])


def _plural(names: Iterable[str]) -> str:
    """The first three of them."""
    all_names = list(names)
    more = f" and {len(all_names) - 3} more" if len(all_names) > 3 else ""
    return ", ".join(all_names[:3]) + more
