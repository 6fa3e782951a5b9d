"""The main program of the processes that `app.worker(processes=)` starts.

It finds the app or the worker by its name, and runs the worker until it is asked to stop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, Protocol, TypedDict, Unpack, cast

import msgspec
from msgspec import Struct

from ropewalk.errors import DefinitionError, RopewalkError
from ropewalk.fleet.exit_codes import ExitCode, code_for
from ropewalk.fleet.parent_link import HURRIED_BY, Announcement, ParentLink
from ropewalk.fleet.shutdown import DrainWatch, ignore_stop_signals
from ropewalk.ports.store.core import Durability
from ropewalk.runners.source import Source, object_at
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.worker import Worker

logger = logging.getLogger("ropewalk.worker")


class WorkerSettings(TypedDict, total=False):
    """The settings of `app.worker(...)` that can be sent to another process as data."""

    queues: Sequence[str] | None
    types: Sequence[str]
    tenants: Sequence[str] | None
    concurrency: int
    lease: float
    grace: float
    poll: float
    scheduler: bool


class ProcessConfig(Struct, frozen=True, kw_only=True):
    """What a worker's process needs to know to find and run its worker."""

    name: str
    """The name of the process, such as `worker-2`."""
    source: Source
    """The module and name of the app, or of the worker that the app made."""
    settings: WorkerSettings | None
    """The settings with which to make a worker of the app, or None if `source` is a worker."""
    store: str
    """The URL of the store of the supervisor's app, with the password hidden."""


class WorkerMaker(AbstractAsyncContextManager[object], Protocol):
    """The part of an app that this module needs; importing `App` here would break the layers."""

    @property
    def url(self) -> str: ...

    @property
    def durability(self) -> Durability: ...

    def worker(self, **settings: Unpack[WorkerSettings]) -> Worker: ...


def main(fd: int, encoded_config: str) -> NoReturn:
    """Run the worker that a ProcessConfig in JSON names, with the link to the supervisor on descriptor `fd`."""
    config = msgspec.json.decode(encoded_config, type=ProcessConfig)
    multiprocessing.current_process().name = config.name  # `%(processName)s` in lines of a log
    link = ParentLink.on_descriptor(fd, config.name)
    link.drain_when_cut(SystemRuntime())
    sys.exit(serve(config, link))


def serve(config: ProcessConfig, link: ParentLink) -> ExitCode:
    """Run the worker until it has drained, and return the exit code of the process."""
    try:
        worker = worker_of(config)
        _run(worker, cast("WorkerMaker", worker.client), config, link)
    except RopewalkError as error:
        if link.has_announced:
            logger.error("%s: %s", config.name, error)  # noqa: TRY400 # the message is complete without a traceback
        else:
            link.refuse(str(error))  # the supervisor logs it
        return code_for(error)
    except Exception as error:
        if not link.has_announced:
            link.refuse(f"{type(error).__name__}: {error}")
        logger.exception("%s ends", config.name)
        return ExitCode.FAILED
    return ExitCode.OK


def worker_of(config: ProcessConfig) -> Worker:
    """Find or make the worker; raise DefinitionError if the name means something else in this process."""
    found = object_at(config.source)
    where = f"{config.source.script or config.source.module}:{config.source.qualname}"
    if config.settings is None:
        if not isinstance(worker := getattr(found, "worker", None), Worker):
            raise DefinitionError(
                f"{where} is {found!r} in a process of its own, not what app.worker(processes=...) made: "
                "make it at the top level of its module"
            )
        return worker
    if not hasattr(found, "worker") or not hasattr(found, "durability"):
        raise DefinitionError(
            f"{where} is {found!r} in a process of its own, not an App: make the app at the top level of its module, "
            'outside of `if __name__ == "__main__":`'
        )
    return cast("WorkerMaker", found).worker(**config.settings)


def _run(worker: Worker, app: WorkerMaker, config: ProcessConfig, link: ParentLink) -> None:
    if app.url != config.store:
        raise DefinitionError(
            f"the app's store is {app.url} in a process of its own, and {config.store} where the workers are started: "
            "give the app one URL that is the same in every process"
        )

    async def run() -> None:
        async with app:
            watch = DrainWatch(worker.grace_seconds, lambda why: logger.error("%s: %s", config.name, why))
            await watch.run(
                worker,
                on_started=lambda it: link.announce(Announcement.of(it, store=app.url, durability=app.durability)),
                hurried_by=HURRIED_BY,
            )
            ignore_stop_signals()

    # Imported objects stay for good, so the garbage collector need not look through them again.
    gc.collect()
    gc.freeze()
    asyncio.run(run())
