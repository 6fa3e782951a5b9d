"""`app.worker(processes=)`: several processes that run the same worker, supervised by this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Final, Self

import msgspec

from ropewalk.client.client import Client
from ropewalk.domain import checks
from ropewalk.domain.time import SECOND
from ropewalk.errors import DefinitionError, RopewalkError, StoreUnavailable
from ropewalk.fleet.child import ProcessConfig, WorkerSettings
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.fleet import Fleet, Member
from ropewalk.fleet.parent_link import Announcement
from ropewalk.fleet.shutdown import KILLED_AFTER_SECONDS
from ropewalk.fleet.worker_process import start_process
from ropewalk.ports.runtime import Runtime, Task
from ropewalk.ports.store.core import Durability
from ropewalk.runners.source import MAIN, MAIN_AGAIN, Source, source_at
from ropewalk.worker.parts import WorkerConfig
from ropewalk.worker.worker import STOPPING, Worker

PROCESSES_MAX: Final = 256
"""The largest number of processes."""
_SCRIPTS: Final = (MAIN, MAIN_AGAIN)
"""The names of modules that are scripts, which another process would have to run again."""
_PROGRAM: Final = (
    "import sys; fd, config, sys.path[:] = int(sys.argv[1]), sys.argv[2], sys.argv[3:]; del sys.argv[1:]; "
    "from ropewalk.fleet.child import main; main(fd, config)"
)
"""The program of each process; it gets the sys.path of this process, so that it finds the module of the app."""


class WorkerProcesses:
    """Processes that run one worker each: `async with processes:` in the background, or `await processes.run()`.

    The process that runs this object starts the others, replaces those that die, and drains them together. It claims
    no jobs itself. The others end with it, however it ends.
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
        """The worker that each process runs; it does not run in this process."""
        return self._worker

    @property
    def processes(self) -> int:
        """The number of processes."""
        return self._processes

    @property
    def client(self) -> Client:
        """The app that made these workers."""
        return self._worker.client

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the job types that the workers serve."""
        return self._worker.types

    @property
    def concurrency(self) -> int | None:
        """How many jobs may run at once in each process; None means any number."""
        return self._worker.concurrency

    @property
    def grace_seconds(self) -> float:
        """How many seconds running jobs have to finish when the workers stop."""
        return self._worker.grace_seconds

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the workers that serve now."""
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
        fleet.gives_up = False  # only `run` may end the program
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> bool:
        """Drain all workers and wait for their end; return False if one left a handler behind or was killed.

        Calling `stop` again, at the same time or later, returns the same answer.
        """
        if self._fleet is None:
            raise RuntimeError("these workers are not running: use `async with workers:` or `await workers.run()`")
        await self._end()
        return self._code == ExitCode.OK

    async def run(self, *, hurried_by: Collection[signal.Signals] = STOPPING) -> bool:
        """Serve until SIGTERM or SIGINT; a second signal, if it is one of `hurried_by`, does not wait for handlers.

        Return False if a worker left a handler behind or was killed. Raise the error that kept the workers from
        starting, or RopewalkError if they kept failing for a minute and none was able to work.
        """
        fleet = self._begin()
        loop = asyncio.get_running_loop()
        stopping = False

        def on_signal(received: signal.Signals) -> None:
            nonlocal stopping
            if not stopping or received in hurried_by:
                stopping = True
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

    # ── start and end ──────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> Fleet:
        if self._fleet is not None and self._code is None:
            raise RuntimeError("these workers are already running; make others with app.worker(processes=...)")
        # Checked here and not in `__init__`, so that tests can import such a module with a memory store.
        url = self._url
        if url is None:
            raise DefinitionError(
                f"processes={self._processes}: the app was given a store object, which cannot be sent to other "
                "processes: give the app a URL that they can open, too"
            )
        if self._durability is Durability.D0:
            raise DefinitionError(
                f"processes={self._processes}: {url} lives inside one process; use a store that several share, "
                "like sqlite:///jobs.db"
            )
        source, settings = self._named()
        self._code, self._complete = None, asyncio.Event()

        async def start(name: str) -> Member:
            config = ProcessConfig(name=name, source=source, settings=settings, store=url)
            text = msgspec.json.encode(config).decode()
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
        why = fleet.refusal or "the log says how they ended"
        if self._code == ExitCode.USAGE:
            return DefinitionError(f"a worker in a process of its own cannot start: {why}")
        if self._code == ExitCode.STORE:
            return StoreUnavailable(f"the workers in processes of their own cannot use the store: {why}")
        return RopewalkError(f"the workers in processes of their own kept failing: {why}")

    # ── how another process finds the worker ────────────────────────────────────────────────────────────────

    def _named(self) -> tuple[Source, WorkerSettings | None]:
        own = top_level_name(self)
        if own is not None:
            return own, None
        its_app = top_level_name(self._worker.client)
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
        assert isinstance(config.concurrency, int), "a policy was refused before"
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


def top_level_name(wanted: object) -> Source | None:
    """Return the module and name at whose top level another process finds the same object, or None if there is none.

    A module that can be imported is preferred to a script, which would have to be run again. Raise DefinitionError if
    only an interactive session has the object.
    """
    found = [
        (module_name, attribute)
        for module_name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        for attribute, value in list(vars(module).items())
        if value is wanted and attribute.isidentifier()
    ]
    if not found:
        return None
    # The module that was imported last most likely defines the object: modules that import it were loaded before.
    module_name, attribute = max(enumerate(found), key=lambda each: (each[1][0] not in _SCRIPTS, each[0]))[1]
    return source_at(attribute, module_name, attribute)
