"""The capability to keep the lines that handlers log with their jobs."""

from __future__ import annotations

from typing import Protocol

from ropewalk.domain.logs import LogLine


class LogStore(Protocol):
    """A store that keeps the lines that `renew` and `settle` bring. A store without this capability gets no lines."""

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        """Returns the lines that a job logged, oldest first; none if the job does not exist."""
        ...
