"""Removal deletes finished jobs, or all jobs except running ones. It removes no job that another job still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import structs

from ropewalk.client.filter import EXAMPLE, Filter, in_domain
from ropewalk.client.operations.base import BATCH, TenantOperations, in_bulk, missing
from ropewalk.client.views.answers import REFUSALS_MAX, BulkResult, PurgeResult, Refusal, not_found
from ropewalk.client.views.workflows import Dependants, members_under
from ropewalk.domain import checks
from ropewalk.domain.jobs.flags import MAY_BE_NEEDED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.search import Filter as Wanted
from ropewalk.domain.search import Order
from ropewalk.errors import Conflict, InvalidInput
from ropewalk.observe.publish import Change
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.operations import Deletion

_KEPT = frozenset({Deletion.IN_USE, Deletion.NOT_TERMINAL})
_KEPT_BECAUSE: Final = {
    Deletion.NOT_TERMINAL: "the job has not ended",
    Deletion.IN_USE: "a job that has not ended depends on it, or is queued under it",
}


class _PurgeProgress:
    """The counts of a purge, and the jobs that it could not remove so far."""

    def __init__(self) -> None:
        self.result = PurgeResult()
        self.running: list[str] = []
        self.needed: list[str] = []
        self.missing: list[str] = []

    def counted(self) -> PurgeResult:
        """The result, with what is left as it was."""
        result = self.result
        result.running, result.needed, result.missing = map(len, (self.running, self.needed, self.missing))
        left = [
            *(Refusal(job_id=each, code="running", message="the job is running") for each in self.running),
            *(Refusal(job_id=each, code="in_use", message=_KEPT_BECAUSE[Deletion.IN_USE]) for each in self.needed),
            *map(not_found, self.missing),
        ]
        result.refusals = left[:REFUSALS_MAX]
        return result


class RemovalOperations(TenantOperations):
    """Removes jobs of a tenant."""

    async def delete(self, job_id: str, *, cascade: bool = False) -> None:
        """Remove a finished job and its history. Raises Conflict if it has not ended, or if other jobs need it.

        cascade: jobs that were enqueued under it are removed, too, and unfinished jobs that depend on any of these.
        Those that wait, including the job itself, are cancelled and removed. If one of them runs, Conflict is raised
        and nothing is removed.
        """
        checks.text(job_id, "job_id")
        store = await self._store()
        if checks.flag(cascade, "cascade"):
            job, _ = await self._record(job_id)
            going = await self._going_along([job], await Dependants.read(store, self._tenant))
            await self._remove_together(going)
            return
        answer = (await store.delete(self._tenant, [job_id]))[job_id]
        match answer:
            case Deletion.DELETED:
                return
            case Deletion.NOT_FOUND:
                raise missing(job_id)
            case Deletion.NOT_TERMINAL:
                raise Conflict(f"job {job_id} is not finished: cancel it first")
            case Deletion.IN_USE:
                raise await self._in_use([job_id])

    async def delete_many(
        self, jobs: Iterable[str] | Filter, *, cascade: bool = False, dry_run: bool = False
    ) -> BulkResult:
        """Remove finished jobs. Jobs that are not finished, or that other jobs need, are skipped.

        cascade: each job is removed together with all jobs that `delete(cascade=True)` removes, or skipped if one of
        them
            runs.
        """
        checks.flag(cascade, "cascade")
        removed = set[str]()

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            if cascade:
                answers = await self._delete_cascading(ids, removed)
            else:
                answers = await self._app_state.store.delete(self._tenant, ids)
            for job_id, answer in answers.items():
                match answer:
                    case Deletion.DELETED:
                        result.done += 1
                    case Deletion.NOT_FOUND:
                        result.miss(job_id)
                    case Deletion.NOT_TERMINAL | Deletion.IN_USE:
                        result.skip(job_id, answer.value, _KEPT_BECAUSE[answer])

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def delete_chain(self, job_id: str, *, cascade: bool = False) -> None:
        """Remove every job of the chain of a job. Raises Conflict if one of them runs, or if other jobs need them.

        cascade: jobs that wait in the chain, or depend on it, are cancelled and removed, too.
        """
        checks.text(job_id, "job_id")
        checks.flag(cascade, "cascade")
        store = await self._store()
        members = await WORKFLOWS.of(store).chain(self._tenant, job_id)
        if not members:
            raise missing(job_id)
        outside = (await Dependants.read(store, self._tenant)).of(members)
        doomed = [*members, *outside]
        if cascade:
            await self._remove_together(doomed)
            return
        _refuse([job for job in members if not job.terminal], "has not ended: cancel it first, or say cascade=True")
        _refuse(outside, "depends on this chain and has not ended: cancel it first, or say cascade=True")
        answers = await store.delete(self._tenant, [job.id for job in doomed])
        kept = [each for each, answer in answers.items() if answer in _KEPT]
        if kept:
            raise await self._in_use(kept)

    async def purge(
        self, wanted: Filter | None = None, *, queue: str | None = None, dry_run: bool = False
    ) -> PurgeResult:
        """Remove all jobs of a queue, or all that match a filter, except running ones.

        Waiting jobs are cancelled and removed in one step, a thousand at a time, with the same consequences for their
        dependants as any cancellation. Jobs that are enqueued meanwhile stay. You can safely repeat a purge, also after
        it was interrupted.

        >>> await app.purge(queue="mail")
        >>> await app.purge(Filter(types="mail", states="scheduled"), dry_run=True)
        """
        domain_filter = _jobs_to_purge(wanted, queue)
        checks.flag(dry_run, "dry_run")
        store = await self._store()
        until = await store.clock() + 1
        before = until if domain_filter.created_before is None else min(until, domain_filter.created_before)
        domain_filter = structs.replace(domain_filter, created_before=before)
        left, cursor = _PurgeProgress(), None
        while True:
            page = await store.search(self._tenant, domain_filter, order=Order.CREATED_ASC, cursor=cursor, limit=BATCH)
            left.result.requested += len(page.jobs)
            if dry_run:
                left.running += [job.id for job in page.jobs if job.status is Status.RUNNING]
            elif page.jobs:
                await self._purge([job.id for job in page.jobs], left)
            cursor = page.next_cursor
            if cursor is None:
                break
        # Parents come before the jobs under them and their dependants, and were still needed at that time.
        await self._purge_all(left.needed, left)
        return left.counted()

    async def _delete_cascading(self, ids: Sequence[str], removed: set[str]) -> Mapping[str, Deletion]:
        """Deletes each of these jobs with everything that depends on it. `removed` contains the ids of the jobs that
        were removed together with others so far."""
        store = self._app_state.store
        jobs = (await store.get(self._tenant, ids)).jobs
        plain = [each for each, job in jobs.items() if not job.flags & MAY_BE_NEEDED]
        answers = dict.fromkeys(ids, Deletion.NOT_FOUND)
        answers.update((each, Deletion.DELETED) for each in ids if each in removed)
        dependants = Dependants([], []) if len(plain) == len(jobs) else await Dependants.read(store, self._tenant)
        for job in jobs.values():
            if not job.flags & MAY_BE_NEEDED:
                continue
            if job.id in removed:
                answers[job.id] = Deletion.DELETED
                continue
            going = await self._going_along([job], dependants)
            try:
                await self._remove_together(going)
            except Conflict:
                answers[job.id] = Deletion.IN_USE
            else:
                removed.update(each.id for each in going)
                answers[job.id] = Deletion.DELETED
        left = [each for each in plain if each not in removed]
        answers.update(dict.fromkeys(set(plain) & removed, Deletion.DELETED))
        if left:
            answers.update((await self._purged(left)).items())
        return answers

    async def _going_along(self, jobs: Sequence[JobRecord], dependants: Dependants) -> list[JobRecord]:
        """Returns these jobs, all jobs under them, and all unfinished jobs that depend on any of them."""
        going = {job.seq: job for job in jobs}
        size = 0
        while size < len(going):
            size = len(going)
            under = await members_under(self._app_state.store, self._tenant, list(going.values()))
            going.update((job.seq, job) for job in under)
            going.update((job.seq, job) for job in dependants.of(list(going.values())))
        return list(going.values())

    async def _remove_together(self, going: Sequence[JobRecord]) -> None:
        """Removes all of these jobs. Raises Conflict if one runs, or if a job that is not among them needs one."""
        _refuse([job for job in going if job.status is Status.RUNNING], "runs: cancel it first")
        ids, left = [job.id for job in sorted(going, key=lambda job: job.seq)], _PurgeProgress()
        if len(ids) > BATCH:
            await self._purge_all(ids, left)
        else:
            await self._purge(ids, left, together=True)
        if left.running:
            raise Conflict(f"{_plural(left.running)} has started meanwhile: cancel it, and delete again")
        if left.needed:
            raise await self._in_use(left.needed)

    async def _purge_all(self, ids: Sequence[str], left: _PurgeProgress) -> None:
        """Purges the jobs, beginning with the newest, and repeats this as long as it removes any."""
        newest_first = ids[::-1]
        while newest_first:
            left.needed = []
            for start in range(0, len(newest_first), BATCH):
                await self._purge(newest_first[start : start + BATCH], left)
            if len(left.needed) == len(newest_first):
                return
            newest_first = left.needed

    async def _purge(self, ids: Sequence[str], left: _PurgeProgress, *, together: bool = False) -> None:
        answers, result = await self._purged(ids, left.result, together=together), left.result
        for each in ids:
            match answers.get(each):
                case Deletion.DELETED:
                    result.deleted += 1
                case Deletion.NOT_TERMINAL:
                    left.running.append(each)
                case Deletion.NOT_FOUND:
                    left.missing.append(each)
                case Deletion.IN_USE:
                    left.needed.append(each)
                case None:  # Another one of the jobs runs, so that nothing was removed.
                    pass

    async def _purged(
        self, ids: Sequence[str], result: PurgeResult | None = None, *, together: bool = False
    ) -> Mapping[str, Deletion]:
        purged = await self._app_state.store.purge(self._tenant, ids, together=together)
        if result is not None:
            result.cancelled += len(purged.cancelled)
        self._app_state.store.notifier.publish(Hint(finished=tuple(job.id for job in purged.cancelled), control=True))
        self._publish([Change(job, Move.CANCEL, job.error) for job in purged.cancelled], purged.consequences)
        return purged.answers

    async def _in_use(self, ids: Sequence[str]) -> Conflict:
        """Returns the error that names the jobs which need these: their dependants, and unfinished jobs under them."""
        store = self._app_state.store
        jobs = list((await store.get(self._tenant, ids)).jobs.values())
        users = (await Dependants.read(store, self._tenant)).of(jobs)
        users += [job for job in await members_under(store, self._tenant, jobs) if not job.terminal]
        needed_by = _named(users) or "something under it that has not ended"
        return Conflict(
            f"{_plural(ids)} is still needed by {needed_by}: delete it when they have ended, or pass cascade=True"
        )


def _jobs_to_purge(wanted: Filter | None, queue: str | None) -> Wanted:
    """Returns the filter for the jobs to purge. `Filter()` selects all jobs, which needs to be written explicitly."""
    checks.instance_or_none(wanted, "wanted", Filter, EXAMPLE)
    checks.text_or_none(queue, "queue")
    if wanted is None and queue is None:
        raise InvalidInput(
            "no argument says what to purge: give queue=, or a Filter (Filter() matches all jobs of this tenant)",
            field="wanted",
        )
    if queue is None:
        return in_domain(wanted)
    if wanted is not None:
        raise InvalidInput(
            f"queue={queue!r} is given together with a filter: give only one; Filter(queues=...) also selects queues",
            field="queue",
        )
    return in_domain(Filter(queues=queue))


def _refuse(jobs: Sequence[JobRecord], why: str) -> None:
    if jobs:
        raise Conflict(f"{_named(jobs)} {why}")


def _named(jobs: Sequence[JobRecord]) -> str:
    return _plural([f"{job.id} ({job.type})" for job in jobs])


def _plural(names: Iterable[str]) -> str:
    """Returns the first three names, and how many more there are."""
    all_names = list(names)
    more = f" and {len(all_names) - 3} more" if len(all_names) > 3 else ""
    return ", ".join(all_names[:3]) + more
