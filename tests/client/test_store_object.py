"""An app on a store that was made already, instead of a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, DefinitionError, job
from ropewalk.backends.memory import MemoryStore
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.ports.store.core import Durability
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing import FakeRuntime


@job
async def add(a: int, b: int) -> int:
    return a + b


async def test_jobs_run_on_it() -> None:
    app = App(store=MemoryStore(SystemRuntime()), jobs=[add])
    async with app.running():
        assert await app.enqueue(add(1, 2)).result(timeout=10) == 3


async def test_the_app_opens_and_closes_it(tmp_path: Path) -> None:
    """As it does with the store behind a URL: using the app again opens it again."""
    app = App(store=SqliteStore(tmp_path / "jobs.db", SystemRuntime()), jobs=[add])
    async with app:
        handle = await app.enqueue(add(1, 2))
    async with app.running():
        assert await app.handle(handle.id, add).result(timeout=10) == 3


def test_it_is_named_instead_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """What $ROPEWALK_URL says is for apps that are given nothing."""
    monkeypatch.setenv("ROPEWALK_URL", "sqlite:///elsewhere.db")
    app = App(store=MemoryStore(FakeRuntime()))
    assert (app.url, app.durability) == ("memory:", Durability.D0)


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ({"url": "memory://"}, r"url='memory://' is given beside store="),
        ({"url": "postgresql://me:secret@host/db"}, r"url='postgresql://me:\*\*\*@host/db' is given beside store="),
        (
            {"allow_weaker_durability": True},
            r"allow_weaker_durability=True is given beside store=",
        ),
        ({"migrate": False}, r"migrate=False is given beside store=: give it to the store"),
    ],
)
def test_what_is_for_urls_is_refused_beside_it(beside: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        App(store=MemoryStore(FakeRuntime()), **beside)


@pytest.mark.parametrize("wrong", ["sqlite:///jobs.db", MemoryStore, 7])
def test_what_is_no_store_is_refused(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match="store="):
        App(store=wrong)


async def test_the_doctor_does_not_open_it_a_second_time(tmp_path: Path) -> None:
    """There is no URL to open: nothing is said about wake-ups between processes."""
    store = SqliteStore(tmp_path / "jobs.db", SystemRuntime())
    async with App(store=store) as app:
        subjects = {finding.subject for finding in await app.examine()}
    assert "schema" in subjects
    assert "wake-ups" not in subjects


async def test_worker_processes_are_refused_on_it(tmp_path: Path) -> None:
    """They would each make a store of their own, and nobody could tell whether it is on the same data."""
    app = App(store=SqliteStore(tmp_path / "jobs.db", SystemRuntime()), jobs=[add])
    with pytest.raises(DefinitionError, match=r"processes=2: the app was given a store object, .*: give the app a URL"):
        await app.worker(processes=2).__aenter__()
