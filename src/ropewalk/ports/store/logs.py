"""Capability: the lines that handlers log are kept with their job."""

from __future__ import annotations

from typing import Protocol

from ropewalk.domain.logs import LogLine


class LogStore(Protocol):
    """A store with this capability keeps the lines that come with `renew` and `settle`. Others are sent none."""

    async def log(self, tenant: str, job_id: str) -> list[LogLine]:
        """What a job logged, oldest first; nothing for one that does not exist."""
        ...
