"""What `ropewalk worker` was told, apart from how many processes: as settings of a worker, and as a command line again.

What was not given is in neither: it is for the worker to say, or a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict, cast

from msgspec import Struct


class WorkerSettings(TypedDict, total=False):
    """Of `app.worker(...)`, as far as there are options for them."""

    queues: Sequence[str]
    types: Sequence[str]
    tenants: Sequence[str]
    concurrency: int
    grace: float
    lease: float
    scheduler: bool


class WorkerOptions(Struct, frozen=True, kw_only=True):
    path: str
    """module:name, of an app or of a worker"""
    queues: Sequence[str]
    types: Sequence[str]
    tenants: Sequence[str]
    concurrency: int | None
    grace: float | None
    lease: float | None
    scheduler: bool
    log_level: str
    log_format: str = "text"

    def settings(self) -> WorkerSettings:
        """Those that were given."""
        return cast("WorkerSettings", self._asked())

    def given(self) -> list[str]:
        """The options that set them."""
        return [_OPTIONS[name] for name in self._asked()]

    def arguments(self) -> list[str]:
        """Of a worker in a process of its own."""
        words = [word for name, value in self._asked().items() for word in _spelled(_OPTIONS[name], value)]
        return [*words, f"--log-level={self.log_level}", f"--log-format={self.log_format}", "--", self.path]

    def _asked(self) -> dict[str, Sequence[str] | float]:
        every: dict[str, Sequence[str] | float | None] = {
            "queues": self.queues or None,
            "types": self.types or None,
            "tenants": self.tenants or None,
            "concurrency": self.concurrency,
            "grace": self.grace,
            "lease": self.lease,
            "scheduler": None if self.scheduler else False,
        }
        return {name: value for name, value in every.items() if value is not None}


_OPTIONS: Final = {
    "queues": "--queue",
    "types": "--type",
    "tenants": "--tenant",
    "concurrency": "--concurrency",
    "grace": "--grace",
    "lease": "--lease",
    "scheduler": "--no-scheduler",
}


def _spelled(option: str, value: Sequence[str] | float) -> list[str]:
    if value is False:
        return [option]
    if isinstance(value, int | float):
        return [f"{option}={value}"]
    return [f"{option}={each}" for each in value]
