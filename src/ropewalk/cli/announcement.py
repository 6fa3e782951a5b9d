"""Who works where: what a worker says of itself once it has started, in one line or one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, to_builtins

from ropewalk.app import App
from ropewalk.cli import render


class Announcement(Struct, frozen=True, kw_only=True):
    worker: str
    store: str
    durability: str
    types: list[str]
    concurrency: int

    @classmethod
    def of(cls, worker: str, app: App, types: Sequence[str], concurrency: int) -> Announcement:
        durability = app.durability.value
        return cls(worker=worker, store=app.url, durability=durability, types=sorted(types), concurrency=concurrency)

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
        return f"{self.store} ({self.durability}): {', '.join(self.types)}; {self.concurrency}"
