"""H5, T3: `ropewalk schedules` shows schedules and changes them."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs

from ropewalk import App, InvalidInput, NotFound, job
from ropewalk.cli.group import root
from ropewalk.cli.worker.command import worker
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.ports.store.schedules import ScheduleChange


@job
async def report(kind: str) -> str:
    return kind


def tides(after: datetime) -> datetime | None:
    return after + timedelta(hours=6)


def make(fire: datetime) -> None:
    return None


@pytest.fixture
async def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with App(url, jobs=[report], functions=[tides, make]) as app:
        await app.create_schedule(
            "nightly", cron="30 3 * * *", timezone="Asia/Tokyo", job=report("sales"), missed="once"
        )
        await app.create_schedule("tides", next=tides, run=make)
        await app.create_schedule("bell\a", every=3600, job=report("x"))
        await app.edit_schedule("tides", missed="all")
        await app.tenant("acme").create_schedule("theirs", every=60, job=report("x"))
    return url


def ropewalk(url: str, *arguments: str) -> str:
    printed = CliRunner().invoke(root, ["schedules", *arguments, "--url", url], catch_exceptions=False)
    assert printed.exit_code == 0
    return printed.output


def document(url: str, *arguments: str) -> Any:
    return json.loads(ropewalk(url, *arguments, "--json"))


def lines(url: str, *arguments: str) -> list[str]:
    """With dates and distances that do not change from day to day."""
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", ropewalk(url, *arguments))
    return [re.sub(r"\d\d:\d\d:\d\d UTC", "TIME", line) for line in text.splitlines()]


def test_list(url: str) -> None:
    header, bell, nightly, tidal = lines(url, "list")
    assert header.split() == ["NAME", "WHEN", "WORK", "STATE", "NEXT", "IN"]
    assert re.fullmatch(r"bell\\x07 +every 1 h +report +active +DATE TIME +.*", bell)
    assert re.fullmatch(r"nightly +30 3 \* \* \* \(Asia/Tokyo\) +report +active +DATE 03:30:00 JST +\S+ \w+", nightly)
    assert re.fullmatch(r"tides +as tides tells +run make +active +DATE TIME +.*", tidal)
    assert [each["name"] for each in document(url, "list")["schedules"]] == ["bell\a", "nightly", "tides"]
    assert [each["name"] for each in document(url, "list", "--tenant", "acme")["schedules"]] == ["theirs"]
    assert ropewalk(url, "list", "--tenant", "nobody") == "no schedules\n"


def test_show(url: str) -> None:
    assert lines(url, "show", "nightly") == [
        "name        nightly",
        "when        30 3 * * * (Asia/Tokyo)",
        "work        report",
        "queue       default",
        'arguments   {"kind":"sales"}',
        "missed      once",
        "state       active",
        "last fire   never",
        "next fires  DATE 03:30:00 JST",
        *["            DATE 03:30:00 JST"] * 4,
    ]
    tidal = lines(url, "show", "tides")
    assert "edited      at run time: code does not change it until reset=True" in tidal
    assert "generation  2" in tidal
    assert tidal[-1] == "next fires  DATE TIME", "only a process that has the function knows more"
    shown = document(url, "show", "nightly")
    assert (shown["cron"], shown["arguments"], len(shown["upcoming"])) == ("30 3 * * *", {"kind": "sales"}, 5)


def test_next(url: str) -> None:
    header, *fires = lines(url, "next", "nightly", "--count", "3")
    assert header.split() == ["FIRE", "UTC", "IN"]
    assert [re.sub(r"  \S+ \w+$", "", fire) for fire in fires] == ["DATE 03:30:00 JST  DATE 18:30:00"] * 3
    assert lines(url, "next", "bell\a", "--count", "1")[0].split() == ["FIRE", "IN"]
    times = [datetime.fromisoformat(each) for each in document(url, "next", "nightly", "--count", "3")["upcoming"]]
    assert [later - times[0] for later in times] == [timedelta(days=day) for day in range(3)]


def test_pause_resume_and_delete(url: str) -> None:
    assert ropewalk(url, "pause", "nightly", "tides") == "nightly  paused\ntides  paused\n"
    assert "paused" in lines(url, "list")[2]
    assert [each["paused"] for each in document(url, "resume", "nightly", "tides")["schedules"]] == [False, False]
    assert ropewalk(url, "resume", "nightly") == "nightly  resumed\n"
    assert ropewalk(url, "delete", "nightly") == "nightly  deleted\n"
    assert document(url, "delete", "tides") == {"deleted": ["tides"]}
    with pytest.raises(NotFound, match="no schedule 'nightly' for this tenant"):
        ropewalk(url, "delete", "nightly")


def test_trigger(url: str) -> None:
    assert re.fullmatch(r"[0-9a-f-]{36}  queued \(report\)\n", ropewalk(url, "trigger", "nightly"))
    assert document(url, "trigger", "nightly")["arguments"] == {"kind": "sales"}
    with pytest.raises(InvalidInput, match="made by the function 'make', which this app does not have"):
        ropewalk(url, "trigger", "tides")


def test_one_that_has_ended(url: str) -> None:
    async def end() -> None:
        async with App(url) as app:
            [read] = (await app._core.store.get_schedules("default", ["tides"])).schedules
            ended = structs.replace(read.schedule, next_fire=None)
            await app._core.store.change_schedules([ScheduleChange(before=read, after=ended)])

    asyncio.run(end())
    assert ropewalk(url, "next", "tides") == "tides has ended: it fires no more\n"
    assert "ended" in lines(url, "list")[-1]


def test_a_worker_that_leaves_schedules_to_others() -> None:
    """Also one in a process of its own."""
    options = WorkerOptions(
        path="shop:app",
        queues=(),
        types=(),
        tenants=(),
        concurrency=1,
        grace=1,
        lease=None,
        scheduler=False,
        log_level="info",
    )
    assert worker.make_context("worker", options.arguments()).params["no_scheduler"] is True
