"""The identity behind a request: its tenant, its roles, and what bounds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.http.request import Request

EVERY_TENANT: Final = "*"
"""The tenant of an identity that may act for any tenant, one per request."""


class Role(StrEnum):
    """What an identity may do. Roles do not include one another: an identity has each role that it needs."""

    SUBMIT = "submit"
    """Enqueue jobs."""
    READ = "read"
    """Look at jobs, queues, workers and statistics."""
    OPERATE = "operate"
    """Change jobs, queues, limits, schedules and workers."""
    WORK = "work"
    """Run jobs as a remote worker."""
    ADMIN = "admin"
    """Manage tokens and webhooks, and read the audit."""


class Payloads(StrEnum):
    """How much of the users' own data an identity sees: arguments, results, checkpoints, steps, signals, log lines,
    error messages and tracebacks."""

    FULL = "full"
    REDACTED = "redacted"
    """Everything but what is marked as secret."""
    NONE = "none"


class Identity(Struct, frozen=True, kw_only=True):
    """Somebody who sends requests."""

    subject: str
    """Who it is, as the audit names it: a token's id, or a name that the host application gives."""
    tenant: str
    """Its tenant, or `*` if it may act for every tenant."""
    roles: frozenset[Role]
    payloads: Payloads = Payloads.REDACTED
    types: frozenset[str] | None = None
    """The job types it may put in, take out and change. None for every type."""
    queues: frozenset[str] | None = None
    """The queues it may put jobs into and take them from. None for every queue."""
    token_id: str | None = None
    """The token that proved it, if it was one."""
    session_id: str | None = None
    """The session of a browser that proved it, if it was one."""
    requests_per_second: float | None = None
    """How many requests it may send to each server per second. None for any number."""

    @property
    def bounded(self) -> bool:
        """Whether it reaches only some types or queues of its tenant."""
        return self.types is not None or self.queues is not None

    def reaches(self, job_type: str, queue: str) -> bool:
        """Whether it may have anything to do with a job of this type in this queue."""
        return (self.types is None or job_type in self.types) and (self.queues is None or queue in self.queues)


Authenticate: TypeAlias = Callable[[Request], Awaitable[Identity | None]]
"""Finds out who sends a request. None means that nobody proved to be anybody."""
