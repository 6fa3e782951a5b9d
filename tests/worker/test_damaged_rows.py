"""A worker meets a job whose stored row was damaged past the store: the others run, and the worker goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropewalk import App, Context, Filter, JobFailed, job, sqlite3


@job
async def echo(number: int) -> int:
    return number


@job(max_attempts=1)
async def damages_itself(ctx: Context, path: str) -> None:
    _damage(path, ctx.id, "flags", 4)
    raise ValueError("not yet")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[
            ("type", "nosuch"),
            ("crashes", -1),
            ("flags", -1),
            ("flags", 1 << 62),
            ("priority", 1 << 62),
            ("rev", 1 << 62),
        ],
        *[(column, sign << 62) for column in ("created_at", "run_at", "deadline") for sign in (1, -1)],
    ],
)
async def test_healthy_jobs_run_behind_a_damaged_one(tmp_path: Path, column: str, value: str | int) -> None:
    unhappy: list[str] = []
    path = str(tmp_path / "jobs.db")
    app = App(f"sqlite:///{path}", jobs=[echo, damages_itself], on_error=lambda _, place: unhappy.append(place))
    async with app:
        bad = await app.enqueue(echo(0))
        healthy = [await app.enqueue(echo(number)) for number in range(1, 4)]
        _damage(path, bad.id, column, value)
        assert (await app.why(bad.id)).cause == "damaged"
        async with app.worker():
            assert [await each.result(timeout=10) for each in healthy] == [1, 2, 3]
        assert unhappy == []
        assert len((await app.search()).jobs) == 4
        assert len((await app.failures()).jobs) <= 1
        await app.cancel_many(Filter())
        await app.purge(Filter())
        assert await app.count() <= 1, "one created after all time is in no filter of what there was until now"


async def test_a_job_whose_flags_are_damaged_while_it_runs_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    async with App(f"sqlite:///{path}", jobs=[echo, damages_itself]) as app, app.worker():
        bad = await app.enqueue(damages_itself(path))
        assert await (await app.enqueue(echo(1))).result(timeout=10) == 1
        with pytest.raises(JobFailed, match="not yet"):
            await bad.result(timeout=10)


def _damage(path: str, job_id: str, column: str, value: str | int) -> None:
    db = sqlite3.connect(path, isolation_level=None, timeout=10)
    db.execute(f"UPDATE job SET {column} = ? WHERE id = ?", (value, job_id))
    db.close()
