"""safe-3, safe-11: a process that dies between the schedule and its jobs leaves neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.sql import schedules
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.schedules.schedule import Every, pause
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import DatabaseStore
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import new_job
from ropewalk.testing.contract.store_scheduler import StoreScheduler, plan_of


async def test_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await die_between(SqliteStore(tmp_path / "jobs.db", SystemRuntime()), monkeypatch)


async def test_on_a_server(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await die_between(PostgresStore(postgres_database, SystemRuntime(), allow_weaker_durability=True), monkeypatch)


async def die_between(store: DatabaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyError("the process died here")

    await store.open()
    clockwork = StoreScheduler(store)
    begun = await clockwork.create("s", plan_of(Every(SECOND)))
    with monkeypatch.context() as dying:
        dying.setattr(schedules, "submit", dies)
        with pytest.raises(KeyError, match="the process died here"):
            await clockwork.put(begun, pause(begun.schedule), new_job(id="fire"))
    assert await clockwork.read("s") == begun
    assert await clockwork.jobs() == []
    assert await clockwork.put(begun, pause(begun.schedule), new_job(id="fire")) is not None
    assert [job.id for job in await clockwork.jobs()] == ["fire"]
    await store.close()
