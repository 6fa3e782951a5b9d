"""The shapes of events and of the query that chooses them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from ropewalk.http.jobs.shapes import ErrorInfo
from ropewalk.http.wire import JobState, Name

NAMED_MAX: Final = 100
"""How many jobs, groups and workflows one stream may name."""

Names = Annotated[list[Name], Meta(max_length=NAMED_MAX)]


class EventQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events are wanted. Jobs, groups and workflows that are named are read again and again."""

    job_id: Names = []
    group_id: Names = []
    workflow_id: Names = []
    type: Names = []
    kind: Names = []
    """Kinds in upper case, such as SUCCEEDED."""
    every_tenant: bool = False

    @property
    def named(self) -> int:
        return len(self.job_id) + len(self.group_id) + len(self.workflow_id)


class StreamedEvent(Struct, frozen=True, kw_only=True):
    """One thing that happened to a job."""

    kind: str
    job_id: str
    type: str
    queue: str
    tenant: str
    state: JobState | None
    """The state that the event led to. None where an event does not tell it."""
    attempt: int
    group_id: str
    rev: int | None
    """None in events that this server heard of, which do not tell it."""
    at: datetime
    error: ErrorInfo | None = None
