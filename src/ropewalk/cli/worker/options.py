"""The options of `ropewalk worker`, as settings of a worker and as the command line of another process.

Options that were not given are in neither, so that the code of the worker or a default decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict, cast

from msgspec import Struct


class WorkerSettings(TypedDict, total=False):
    """The settings of `app.worker(...)` for which the command has options."""

    queues: Sequence[str]
    types: Sequence[str]
    tenants: Sequence[str]
    concurrency: int
    grace: float
    lease: float
    scheduler: bool


class WorkerOptions(Struct, frozen=True, kw_only=True):
    """The options of one command line, without --processes."""

    path: str
    """The `module:name` of an app or of a worker."""
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
        """Return the settings for which options were given."""
        return cast("WorkerSettings", self._asked())

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [_OPTIONS[name] for name in self._asked()]

    def arguments(self) -> list[str]:
        """Return the arguments of `ropewalk worker` for another process with the same options."""
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
