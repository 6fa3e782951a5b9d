"""Waiting, for handles: records as they ended, values decoded. Not for users; they wait through a Handle or `wait`."""

from __future__ import annotations

from ropewalk.client.group_values import check_group, group_value
from ropewalk.client.operations.base import Bound
from ropewalk.domain.jobs.flags import CHAINED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status


class Waiting(Bound):
    async def wait_for_record(self, job_id: str, timeout_seconds: float | None) -> JobRecord:
        """Of the job, or of the last of its chain where it continued: that one has its result."""
        session = await self._core.session()
        began = self._core.runtime.monotonic()
        job = await session.jobs.wait(self._tenant, job_id, timeout_seconds)
        if not job.flags & CHAINED or job.status is not Status.COMPLETED:
            return job
        left = None
        if timeout_seconds is not None:
            left = max(0.0, began + timeout_seconds - self._core.runtime.monotonic())
        return await session.chains.wait(self._tenant, job_id, left)

    async def wait_for_chain(self, job_id: str, timeout_seconds: float | None) -> JobRecord:
        """The last member, once it ended without continuing."""
        session = await self._core.session()
        return await session.chains.wait(self._tenant, job_id, timeout_seconds)

    async def wait_for_group(
        self, job_id: str, timeout_seconds: float | None, *, raise_on_failure: bool = False
    ) -> object:
        """The value of the group this job is in, once that closed."""
        if self._core.reports_orphans:
            self._core.awaited.note(self._tenant, job_id)
        session = await self._core.session()
        job, _ = await self._record(job_id)
        closed = await session.groups.wait(self._tenant, job.group_id or job.id, timeout_seconds)
        check_group(closed.root, closed.record, raise_on_failure=raise_on_failure)
        return await group_value(self._core.store, closed.root, closed.record, self._describe)

    def decode_result(self, job: JobRecord) -> object:
        return self._describe.value(job.type, job.result)
