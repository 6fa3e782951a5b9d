"""A fleet of real worker processes on one store, and ways to maltreat them.

The test process submits and judges; workers are killed, paused and terminated by their process id alone. In its
directory lies the history (history.py) that every process appends to, and by default the store, an SQLite file.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from ropewalk import App, Filter, State
from ropewalk.connect import connect
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter as StoredFilter
from ropewalk.domain.search import Order
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.reading import StoredHistory
from ropewalk.ports.store.workflows import GroupRecord
from ropewalk.runtime.system import SystemRuntime
from tests.torture import history
from tests.torture.history import Happening

HISTORY: Final = "history.jsonl"
LOOK_SECONDS: Final = 0.05
ROOT: Final = Path(__file__).resolve().parents[2]
LIVE: Final = (State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED, State.RUNNING)


def seeded() -> Random:
    """Chance for one test, told so that a failure can be repeated: ROPEWALK_TORTURE_SEED=… pytest …"""
    seed = int(os.environ.get("ROPEWALK_TORTURE_SEED", time.time_ns() % 1_000_000))
    print(f"ROPEWALK_TORTURE_SEED={seed}")
    return Random(seed)


def url_in(directory: Path) -> str:
    return f"sqlite:///{directory / 'jobs.db'}"


class Fleet:
    """`size` workers, whoever dies; all gone when the context ends."""

    def __init__(
        self,
        directory: Path,
        *,
        size: int,
        concurrency: int,
        lease: float,
        grace: float = 30.0,
        url: str | None = None,
    ) -> None:
        self._directory = directory
        self._size = size
        self._arguments = [url or url_in(directory), str(directory), str(concurrency), str(lease), str(grace)]
        self._workers: list[subprocess.Popen[bytes]] = []
        self._paused: dict[int, float] = {}
        self.kills = self.pauses = 0
        self.exits: dict[int, int] = {}
        """by process, the exit codes of those that ended other than by our kill"""

    def __enter__(self) -> Self:
        self.refill()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()

    @property
    def happened(self) -> list[Happening]:
        return history.read(self._directory / HISTORY)

    @property
    def serving_pids(self) -> set[int]:
        """Of those alive, who has come so far as to serve."""
        return {worker.pid for worker in self._workers} & served(self.happened)

    async def serving(self) -> None:
        """Wait until every worker of the fleet serves."""
        pids = {worker.pid for worker in self._workers}
        await until(lambda: pids <= served(self.happened), "the fleet serves")

    def refill(self) -> int:
        """Replace whoever is dead; answers how many that were."""
        dead = [worker for worker in self._workers if worker.poll() is not None]
        for worker in dead:
            self._workers.remove(worker)
            self.exits[worker.pid] = worker.returncode
        for _ in range(self._size - len(self._workers)):
            command = [sys.executable, "-m", "tests.torture.worker", *self._arguments]
            self._workers.append(subprocess.Popen(command, cwd=ROOT))
        return len(dead)

    def kill(self, random: Random) -> None:
        """SIGKILL a random worker and replace it at once."""
        self.kill_one(random.choice(self._awake()).pid)

    def grow(self, by: int) -> None:
        """More workers from now on."""
        self._size += by
        self.refill()

    def kill_one(self, pid: int, *, replace: bool = True) -> None:
        """SIGKILL this worker and replace it at once, or have one less from now on."""
        [worker] = [each for each in self._workers if each.pid == pid]
        worker.kill()
        worker.wait()
        self._workers.remove(worker)
        self.kills += 1
        self._size -= not replace
        self.refill()

    def terminate(self, random: Random) -> subprocess.Popen[bytes]:
        """SIGTERM a random worker, which then drains by itself beside its replacement."""
        worker = random.choice(self._awake())
        worker.terminate()
        self._workers.remove(worker)
        self.refill()
        return worker

    def pause(self, random: Random, seconds: float) -> None:
        """SIGSTOP a random worker; `wake` lets it go on once that time has passed."""
        worker = random.choice(self._awake())
        os.kill(worker.pid, signal.SIGSTOP)
        self._paused[worker.pid] = time.monotonic() + seconds
        self.pauses += 1

    def freeze(self) -> set[int]:
        """SIGSTOP every worker, until `wake(everybody=True)`; answers which."""
        pids = {worker.pid for worker in self._awake()}
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            self._paused[pid] = math.inf
        self.pauses += len(pids)
        return pids

    def wake(self, *, everybody: bool = False) -> None:
        for pid, until_time in list(self._paused.items()):
            if everybody or time.monotonic() >= until_time:
                os.kill(pid, signal.SIGCONT)
                del self._paused[pid]

    def _awake(self) -> list[subprocess.Popen[bytes]]:
        return [worker for worker in self._workers if worker.pid not in self._paused and worker.poll() is None]


def served(happened: Iterable[Happening]) -> set[int]:
    """The processes that came so far as to serve."""
    return {each.pid for each in happened if each.kind == "serving"}


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, *, seconds: float = 30.0) -> None:
    """Wait for a named condition; fails by name."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(LOOK_SECONDS)


async def all_terminal(app: App, *, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until no job lives; `meanwhile` is called at every look."""

    async def looked() -> bool:
        meanwhile()
        return await nothing_lives(app)

    await until(looked, "every job is terminal", seconds=seconds)


async def nothing_lives(app: App) -> bool:
    return await app.count(Filter(states=LIVE)) == 0


async def trails(directory: Path, *, url: str | None = None, every: int = 1) -> dict[str, StoredHistory]:
    """Everything the store knows about every job, read through a connection of its own.

    A job that was completed by its first attempt is all in its record: of such only one in `every` is asked for more.
    """
    store = connect(url or url_in(directory), SystemRuntime())
    await store.open()
    found: dict[str, StoredHistory] = {}
    cursor = None
    while True:
        page = await store.search(DEFAULT_TENANT, StoredFilter(), order=Order.CREATED_ASC, cursor=cursor, limit=500)
        for number, job in enumerate(page.jobs):
            trail: StoredHistory | None = StoredHistory(now=page.now, job=job, attempts=[], events=[])
            if number % every == 0 or (job.status, job.rev) != (Status.COMPLETED, 3):
                trail = await store.history(DEFAULT_TENANT, job.id)
            assert trail is not None
            found[job.id] = trail
        cursor = page.next_cursor
        if cursor is None:
            await store.close()
            return found


async def groups(url: str, ids: Iterable[str]) -> dict[str, GroupRecord]:
    """Those of them that have more jobs than their root."""
    store = connect(url, SystemRuntime())
    await store.open()
    wanted = sorted(ids)
    found: dict[str, GroupRecord] = {}
    for start in range(0, len(wanted), 500):
        found |= await WORKFLOWS.of(store).groups(DEFAULT_TENANT, wanted[start : start + 500])
    await store.close()
    return found
