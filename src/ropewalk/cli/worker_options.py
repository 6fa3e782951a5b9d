"""What `ropewalk worker` was told, apart from how many processes: and the same again as a command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct


class WorkerOptions(Struct, frozen=True, kw_only=True):
    app_path: str
    queues: Sequence[str]
    types: Sequence[str]
    tenants: Sequence[str]
    concurrency: int
    grace: float
    lease: float | None
    scheduler: bool
    log_level: str

    def arguments(self) -> list[str]:
        """Of a worker in a process of its own."""
        switches = [] if self.scheduler else ["--no-scheduler"]
        return [*(f"{name}={value}" for name, value in self._given()), *switches, "--", self.app_path]

    def _given(self) -> Iterator[tuple[str, object]]:
        for name, values in (("--queue", self.queues), ("--type", self.types), ("--tenant", self.tenants)):
            yield from ((name, value) for value in values)
        yield "--concurrency", self.concurrency
        yield "--grace", self.grace
        if self.lease is not None:
            yield "--lease", self.lease
        yield "--log-level", self.log_level
