"""`app.worker(processes=)`: the same worker in several processes of their own, held by this one."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Final, Self

import msgspec

from ropewalk.client.client import Client
from ropewalk.domain import checks
from ropewalk.domain.time import SECOND
from ropewalk.errors import DefinitionError, RopewalkError, StoreUnavailable
from ropewalk.fleet.child import Orders, WorkerSettings
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.fleet import Fleet, Member
from ropewalk.fleet.parent_link import Announcement
from ropewalk.fleet.shutdown import KILLED_AFTER_SECONDS
from ropewalk.fleet.whereabouts import whereabouts
from ropewalk.fleet.worker_process import start_process
from ropewalk.ports.runtime import Runtime, Task
from ropewalk.ports.store.core import Durability
from ropewalk.runners.source import Source
from ropewalk.worker.parts import WorkerConfig
from ropewalk.worker.worker import STOPPING, Worker

PROCESSES_MAX: Final = 256
_PROGRAM: Final = (
    "import sys; fd, orders, sys.path[:] = int(sys.argv[1]), sys.argv[2], sys.argv[3:]; del sys.argv[1:]; "
    "from ropewalk.fleet.child import main; main(fd, orders)"
)
"""The app's module is found as this process found it: by its sys.path of that moment."""


class WorkerProcesses:
    """`async with processes:` runs them in the background; `await processes.run()` until a signal says stop.

    This process starts them, replaces those that die, and drains them together. It claims no job itself. They end with
    it, however it ends.
    """

    def __init__(
        self,
        worker: Worker,
        processes: int,
        *,
        config: WorkerConfig,
        url: str | None,
        durability: Durability,
        runtime: Runtime,
    ) -> None:
        checks.between(processes, "processes", 1, PROCESSES_MAX)
        self._worker = worker
        self._processes = processes
        self._config = config
        self._url = url
        self._durability = durability
        self._runtime = runtime
        self._fleet: Fleet | None = None
        self._task: Task | None = None
        self._code: int | None = None
        self._complete = asyncio.Event()

    @property
    def worker(self) -> Worker:
        """The worker that each process runs. It is not running here."""
        return self._worker

    @property
    def processes(self) -> int:
        """How many there are."""
        return self._processes

    @property
    def client(self) -> Client:
        """Whose workers they are: the app that made them."""
        return self._worker.client

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the job types they serve."""
        return self._worker.types

    @property
    def concurrency(self) -> int | None:
        """How many jobs may run at once in each process; None: as many as there are."""
        return self._worker.concurrency

    @property
    def grace_seconds(self) -> float:
        """How long running jobs may take to finish when they stop."""
        return self._worker.grace_seconds

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the workers that serve now, one for each process that has started."""
        return () if self._fleet is None else tuple(each.worker for each in self._fleet.announcements)

    async def __aenter__(self) -> Self:
        fleet = self._begin()
        try:
            await self._complete.wait()
        except BaseException:
            await self._end()
            raise
        if self._code is not None:
            raise self._failure(fleet)
        fleet.gives_up = False  # inside somebody else's program, where ending is not ours to decide
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> bool:
        """Let all of them drain, and wait for their end. False when one had to leave a handler behind or be killed.

        Stopping them again, at the same time or later, gets the same answer.
        """
        if self._fleet is None:
            raise RuntimeError("these workers are not running: use `async with workers:` or `await workers.run()`")
        await self._end()
        return self._code == ExitCode.OK

    async def run(self, *, hurried_by: Collection[signal.Signals] = STOPPING) -> bool:
        """Serve until SIGTERM or SIGINT; a second one, of those in `hurried_by`, does not wait for handlers.

        The answer is False when one of them had to leave a handler behind or be killed. Raises what kept them from
        starting; and RopewalkError where for a minute they kept failing and none was able to work.
        """
        fleet = self._begin()
        loop = asyncio.get_running_loop()
        told = False

        def on_signal(heard: signal.Signals) -> None:
            nonlocal told
            if not told or heard in hurried_by:
                told = True
                fleet.stop()

        for each in STOPPING:
            loop.add_signal_handler(each, on_signal, each)
        try:
            await self._ended()
        except asyncio.CancelledError:
            await self._end()
            raise
        finally:
            for each in STOPPING:
                loop.remove_signal_handler(each)
        if fleet.gave_up:
            raise self._failure(fleet)
        return self._code == ExitCode.OK

    # ── their life ──────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> Fleet:
        if self._fleet is not None and self._code is None:
            raise RuntimeError("these workers are already running; make others with app.worker(processes=...)")
        # Not where they are made: a module that makes some can be imported in tests, on a store in memory.
        url = self._url
        if url is None:
            raise DefinitionError(
                f"processes={self._processes}: the app was given a store, which cannot be handed to other processes: "
                "give it a URL that they can open, too"
            )
        if self._durability is Durability.D0:
            raise DefinitionError(
                f"processes={self._processes}: {url} lives inside one process; use a store that several share, "
                "like sqlite:///jobs.db"
            )
        source, settings = self._named()
        self._code, self._complete = None, asyncio.Event()

        async def start(name: str) -> Member:
            orders = Orders(name=name, source=source, settings=settings, store=url)
            text = msgspec.json.encode(orders).decode()
            return await start_process(lambda fd: ["-c", _PROGRAM, str(fd), text, *sys.path])

        fleet = self._fleet = Fleet(
            self._processes,
            start,
            self._runtime,
            grace_seconds=self.grace_seconds,
            overtime_seconds=KILLED_AFTER_SECONDS,
            on_complete=self._all_serve,
        )

        async def serve() -> None:
            try:
                self._code = await fleet.run()
            finally:
                self._complete.set()

        self._task = self._runtime.spawn(serve(), name="ropewalk-fleet")
        return fleet

    def _all_serve(self, _: Sequence[Announcement]) -> None:
        self._complete.set()

    async def _ended(self) -> None:
        assert self._task is not None, "they were begun"
        await self._task.finished()

    async def _end(self) -> None:
        assert self._fleet is not None, "they were begun"
        if self._code is None and not self._fleet.stopping:
            self._fleet.stop()
        await self._ended()

    def _failure(self, fleet: Fleet) -> RopewalkError:
        why = fleet.refusal or "see the log for how they ended"
        if self._code == ExitCode.USAGE:
            return DefinitionError(f"a worker in a process of its own cannot start: {why}")
        if self._code == ExitCode.STORE:
            return StoreUnavailable(f"the workers in processes of their own cannot use the store: {why}")
        return RopewalkError(f"the workers in processes of their own kept failing: {why}")

    # ── how another process finds the worker ────────────────────────────────────────────────────────────────

    def _named(self) -> tuple[Source, WorkerSettings | None]:
        own = whereabouts(self)
        if own is not None:
            return own, None
        its_app = whereabouts(self._worker.client)
        if its_app is None:
            raise DefinitionError(
                f"processes={self._processes}: other processes find the app by its name, and no module has it at its "
                "top level; write `app = App(...)` there, not inside a function"
            )
        if stays := self._not_data():
            raise DefinitionError(
                f"processes={self._processes}: {', '.join(stays)} cannot be sent to other processes; make the workers "
                "at the top level of a module, `workers = app.worker(processes=...)`: each process finds them there"
            )
        return its_app, self._settings()

    def _not_data(self) -> list[str]:
        config = self._config
        stays = [
            f"{name}="
            for name in ("accept", "backpressure", "backlog_alarm", "redrive")
            if getattr(config, name) is not None
        ]
        return stays if isinstance(config.concurrency, int) else ["concurrency=", *stays]

    def _settings(self) -> WorkerSettings:
        config = self._config
        assert isinstance(config.concurrency, int), "what is no data was refused"
        return WorkerSettings(
            queues=config.queues,
            types=self.types,
            tenants=config.tenants,
            concurrency=config.concurrency,
            lease=config.lease_us / SECOND,
            grace=config.grace_seconds,
            poll=config.poll_seconds,
            scheduler=config.scheduler,
        )
