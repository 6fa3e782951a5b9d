"""Who works where: what a worker says of itself once it has started, in one line or one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, to_builtins

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.worker.worker import Worker


class Announcement(Struct, frozen=True, kw_only=True):
    worker: str
    store: str
    durability: str
    types: list[str]
    concurrency: int | None
    """None: as many as there are"""
    grace_seconds: float

    @classmethod
    def of(cls, worker: Worker, app: App) -> Announcement:
        """Of one that has started: each start has an id of its own."""
        return cls(
            worker=worker.id,
            store=app.url,
            durability=app.durability.value,
            types=list(worker.types),
            concurrency=worker.concurrency,
            grace_seconds=worker.grace_seconds,
        )

    def show(self, *, as_json: bool) -> None:
        if as_json:
            render.echo_json(to_builtins(self))
        else:
            render.echo(f"worker {self.worker} on {self._where()} at a time")

    def show_all(self, workers: Sequence[str], *, as_json: bool) -> None:
        """Several processes that differ in nothing but who they are."""
        if as_json:
            alike = {name: value for name, value in to_builtins(self).items() if name != "worker"}
            render.echo_json({"workers": workers, **alike})
        else:
            render.echo(f"workers {', '.join(workers)} on {self._where()} at a time each")

    def _where(self) -> str:
        number = "any number" if self.concurrency is None else self.concurrency
        return f"{self.store} ({self.durability}): {', '.join(self.types)}; {number}"
