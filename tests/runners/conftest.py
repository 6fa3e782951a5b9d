"""Pools that prove, when a test is over, that they left no process and no descriptor behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ropewalk import AppDefaults, Bounds
from ropewalk.definitions.options import Classifier
from ropewalk.runners.processes import ProcessPool
from ropewalk.runtime.system import SystemRuntime
from tests.cli.forked_commands import ForkedCommands
from tests.servers.home import Home

Troubles = list[tuple[BaseException, str]]
MakePool = Callable[..., ProcessPool]


@pytest.fixture
def troubles() -> Troubles:
    return []


@pytest.fixture
async def make_pool(troubles: Troubles) -> AsyncIterator[MakePool]:
    pools: list[ProcessPool] = []

    def make(
        size: int = 4, bounds: Bounds | None = None, *, strict_return: bool = True, decide: Classifier | None = None
    ) -> ProcessPool:
        pool = ProcessPool(
            size=size,
            bounds=bounds or Bounds(),
            defaults=AppDefaults(strict_return=strict_return, decide=decide),
            runtime=SystemRuntime(),
            report=lambda error, phase: troubles.append((error, phase)),
        )
        pools.append(pool)
        return pool

    before = open_descriptors()
    yield make
    for pool in pools:
        await pool.close()
    assert_no_children()
    assert open_descriptors() == before


@pytest.fixture
def pool(make_pool: MakePool) -> ProcessPool:
    return make_pool()


def open_descriptors() -> set[str]:
    return {each.name for each in Path("/dev/fd").iterdir()}


def assert_no_children() -> None:
    """Not even a zombie, beside what tests share: servers, and the process that commands are forked from."""
    shared = Home.groups | ForkedCommands.groups
    assert [pid for pid, group in children().items() if group not in shared] == []


def children() -> dict[int, int]:
    """Of this process, each with its process group."""
    found: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended just now
            _state, parent, group, *_ = stat.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid():
                found[int(stat.parent.name)] = int(group)
    return found


async def gone(pid: int, seconds: float = 2.0) -> None:
    """Until no process has this number."""
    async with asyncio.timeout(seconds):
        while running(pid):
            await asyncio.sleep(0.01)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Of a parent that does not reap: as gone as it gets."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "Z"
