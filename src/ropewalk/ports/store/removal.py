"""What crosses the storage port when jobs are removed: deleted or purged by people, or pruned after their retention."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.messages import Consequences


class Deletion(StrEnum):
    DELETED = "deleted"
    NOT_TERMINAL = "not_terminal"
    IN_USE = "in_use"
    """a job that has not ended depends on it, or what was queued under it is not finished"""
    NOT_FOUND = "not_found"


class Purged(Struct, frozen=True, kw_only=True):
    answers: dict[str, Deletion]
    """by id; NOT_TERMINAL where it runs. With `together` and one that runs: those that run alone"""
    cancelled: list[JobRecord] = []
    """those that waited, as they were cancelled, whether they could be removed or not"""
    ripple: Consequences = Consequences()


class Pruned(Struct, frozen=True, kw_only=True):
    jobs: int
    results: int
    keys: int
