"""R12, R13, live-5: a tenant that floods the queue delays the others by its share of the turns, and by no more.

Real worker processes, under load. One tenant has far more jobs than they can do; when they are busy with it, nine
others come with a few each, four of them with jobs that have one attempt only and so start in free slots alone
(decision 0033). What everybody gets is measured where the handlers start, while all ten have work waiting:
from half a second after the last of the nine came (by then what workers held in their buffers, at most 100 ms of work,
is done) to the start of the last waiting job of whoever was through first.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ropewalk import App
from tests.torture import history, jobs
from tests.torture.harness import ROOT, until, url_in

pytestmark = pytest.mark.torture

WORKERS: Final = 2
FLOOD: Final = "flood"
SMALL: Final = tuple(f"small-{number}" for number in range(9))
BATCH: Final = 10_000
SERVICE_SECONDS: Final = 0.004
BUFFERED_SECONDS: Final = 0.5
"""how long what workers hold of the flood goes on when the others come"""
TRUSTED_SECONDS: Final = 1.5
"""the same where a look was dear, and is trusted for a second more (backends/sql/claim/cache.py)"""
WINDOW: Final = 400
"""starts; 40 for each"""
JAIN_MIN: Final = 0.95
LATE_MAX: Final = 1.5


class Start(NamedTuple):
    at: float
    tenant: str


async def test_nine_small_tenants_beside_a_flood_on_one_file(tmp_path: Path) -> None:
    await beside_a_flood(url_in(tmp_path), tmp_path, flood=20_000, each=400, settles_seconds=BUFFERED_SECONDS)


@pytest.mark.system
@pytest.mark.timeout(400)
async def test_nine_small_tenants_beside_a_flood_on_one_database(tmp_path: Path, postgres_database: str) -> None:
    await beside_a_flood(postgres_database, tmp_path, flood=100_000, each=1000, settles_seconds=TRUSTED_SECONDS)


async def beside_a_flood(url: str, directory: Path, *, flood: int, each: int, settles_seconds: float) -> None:
    path = directory / "history.jsonl"
    async with App(url, jobs=[jobs.serve], allow_weaker_durability=True) as app:
        await enqueue(app, FLOOD, flood)
        with fleet(url, path):
            await until(lambda: len(starts(path)) > WINDOW, "the fleet is busy with the flood", seconds=60)
            for number, tenant in enumerate(SMALL):
                await enqueue(app, tenant, each, max_attempts=1 if number % 2 else 3)
            came = time.monotonic()
            wanted = each * len(SMALL)
            await until(lambda: len(of_small(starts(path))) == wanted, "the small ones are through", seconds=90)
        left = await app.tenant(FLOOD).count()
    assert left == flood, "nothing of the flood was lost, finished or not"
    judge(starts(path), came, each, settles_seconds)


def judge(started: Sequence[Start], came: float, jobs_each: int, settles_seconds: float) -> None:
    ends = {tenant: max(each.at for each in started if each.tenant == tenant) for tenant in SMALL}
    shared = [each for each in started if came + settles_seconds <= each.at <= min(ends.values())]
    whole = jain(shared)
    windows = [jain(shared[first : first + WINDOW]) for first in range(0, len(shared) - WINDOW + 1, WINDOW)]
    last = max(ends.values())
    pace = sum(came <= each.at <= last for each in started) / (last - came)
    ideal_seconds = (len(SMALL) + 1) * jobs_each / pace
    share = Counter(each.tenant for each in shared)
    print(
        f"{len(shared)} starts while all had work, {pace:.0f} a second: Jain {whole:.4f}, "
        f"worst of {len(windows)} windows {min(windows):.4f}; flood {share[FLOOD]}, "
        f"small {min(share[each] for each in SMALL)} to {max(share[each] for each in SMALL)}; "
        f"the small ones took {last - came:.2f} s, ideally {ideal_seconds:.2f} s"
    )
    # The power of the test: all ten had work for most of the time, and the flood had far more than its share.
    assert len(windows) >= 4
    assert whole >= JAIN_MIN
    assert min(windows) >= JAIN_MIN
    assert last - came <= LATE_MAX * ideal_seconds


def jain(started: Sequence[Start]) -> float:
    """1 where all ten got the same, a tenth where one got everything."""
    counts = Counter(each.tenant for each in started)
    shares = [counts[tenant] for tenant in (FLOOD, *SMALL)]
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def starts(path: Path) -> list[Start]:
    """In the order of time."""
    happened = (each for each in history.read(path) if each.kind == "started")
    return sorted(Start(each.at, each.tenant) for each in happened if each.at is not None and each.tenant is not None)


def of_small(started: Sequence[Start]) -> list[Start]:
    return [each for each in started if each.tenant != FLOOD]


async def enqueue(app: App, tenant: str, count: int, max_attempts: int = 3) -> None:
    served = jobs.serve(SERVICE_SECONDS).using(max_attempts=max_attempts)
    for first in range(0, count, BATCH):
        batch = [served.again() for _ in range(min(BATCH, count - first))]
        await app.tenant(tenant).enqueue_many(batch)


@contextmanager
def fleet(url: str, path: Path) -> Generator[None]:
    command = [sys.executable, "-m", "tests.torture.fair_worker", url, str(path)]
    workers = [subprocess.Popen(command, cwd=ROOT) for _ in range(WORKERS)]
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
