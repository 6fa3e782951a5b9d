"""The main program of a worker's process that `app.worker(processes=)` starts: it finds the app or the worker by its
name, and serves until it is told to stop.
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


class Orders(Struct, frozen=True, kw_only=True):
    """What a worker's process is told when it is started."""

    name: str
    source: Source
    """where the app stands, or the worker that was made of it"""
    settings: WorkerSettings | None
    """with which to make a worker of the app; None where `source` is a worker, which has its own"""
    store: str
    """where the store of the supervisor's app is; a password is hidden"""


class WorkerMaker(AbstractAsyncContextManager[object], Protocol):
    """An app, as far as this module knows it."""

    @property
    def url(self) -> str: ...

    @property
    def durability(self) -> Durability: ...

    def worker(self, **settings: Unpack[WorkerSettings]) -> Worker: ...


def main(fd: int, orders: str) -> NoReturn:
    told = msgspec.json.decode(orders, type=Orders)
    multiprocessing.current_process().name = told.name  # `%(processName)s` in lines of a log
    link = ParentLink.over(fd, told.name)
    link.heed(SystemRuntime())
    sys.exit(serve(told, link))


def serve(orders: Orders, link: ParentLink) -> ExitCode:
    try:
        worker = worker_of(orders)
        _run(worker, cast("WorkerMaker", worker.client), orders, link)
    except RopewalkError as error:
        if link.has_announced:
            logger.error("%s: %s", orders.name, error)  # noqa: TRY400 # the message says all there is to say
        else:
            link.refuse(str(error))  # the supervisor tells it
        return code_for(error)
    except Exception as error:
        if not link.has_announced:
            link.refuse(f"{type(error).__name__}: {error}")
        logger.exception("%s ends", orders.name)
        return ExitCode.FAILED
    return ExitCode.OK


def worker_of(orders: Orders) -> Worker:
    """Raises DefinitionError where the name stands for something else in this process."""
    found = object_at(orders.source)
    where = f"{orders.source.script or orders.source.module}:{orders.source.qualname}"
    if orders.settings is None:
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
    return cast("WorkerMaker", found).worker(**orders.settings)


def _run(worker: Worker, app: WorkerMaker, orders: Orders, link: ParentLink) -> None:
    if app.url != orders.store:
        raise DefinitionError(
            f"the app's store is {app.url} in a process of its own, and {orders.store} where the workers are started: "
            "give the app one URL that is the same in every process"
        )

    async def run() -> None:
        async with app:
            watch = DrainWatch(worker.grace_seconds, lambda why: logger.error("%s: %s", orders.name, why))
            await watch.run(
                worker,
                on_started=lambda it: link.announce(Announcement.of(it, store=app.url, durability=app.durability)),
                hurried_by=HURRIED_BY,
            )
            ignore_stop_signals()

    # What was imported stays for good: no collection need look through it again.
    gc.collect()
    gc.freeze()
    asyncio.run(run())
