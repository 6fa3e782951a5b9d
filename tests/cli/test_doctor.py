"""H5: `ropewalk doctor` on real files that something is wrong with. Each finding says what to do."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, job
from ropewalk.backends.sqlite import filesystem, opening
from ropewalk.backends.sqlite.library import sqlite
from tests.cli.conftest import Run, Start, lingering, until


@job
async def forgotten() -> None:
    """Of a type that no worker of shop:app registers."""


def findings(answer: Any, *levels: str) -> dict[str, str]:
    """Subject → what was found, of those levels; each of them says what to do."""
    chosen = [each for each in answer["findings"] if each["level"] in levels]
    assert all(each["advice"] for each in chosen)
    return {each["subject"]: each["found"] for each in chosen}


def test_all_is_well(ropewalk: Run, start: Start, app: App) -> None:
    start()
    until(app.sync.workers, "the worker serves")
    examined = ropewalk("doctor", "--deep")
    assert (examined.code, examined.err) == (0, "")
    *lines, empty, summary = examined.out.splitlines()
    assert re.fullmatch(r"\d+ ok(, \d note)?", summary)
    assert (lines[0], empty) == ("ok    schema        version 1, the newest this release knows", "")
    assert "ok    integrity     every page of the file is sound" in lines
    assert any(re.fullmatch(r"ok    wake-ups      a hint arrives after \S+ ms", line) for line in lines)
    assert "ok    workers       1 worker alive, 0 of 10 slots taken" in lines


def test_a_job_of_a_type_nobody_registered(ropewalk: Run, start: Start, app: App, url: str) -> None:
    start()
    until(app.sync.workers, "the worker serves")
    other = App(url, jobs=[forgotten])
    other.sync.enqueue(forgotten())
    other.sync.close()
    app.sync.pause("mail")
    app.sync.tenant("acme").enqueue("add", {"a": 1, "b": 2}, queue="mail", delay=60)
    examined = ropewalk("doctor")
    assert examined.code == 1
    assert re.search(
        r"^warn  types         1 job of type 'forgotten' in queue 'default' could start, the oldest for \S+ s, and no "
        r"living worker registers that type\n +→ start a worker that registers 'forgotten' and serves queue 'default'$",
        examined.out,
        re.MULTILINE,
    )


def test_a_killed_workers_lease_that_nobody_takes_back(
    ropewalk: Run, start: Start, app: App, place: Path, url: str
) -> None:
    process = start("--lease", "1")
    lingering(app, "linger", place)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    with sqlite3.connect(place / "jobs.db") as db:  # as if that were long ago
        db.execute("UPDATE job SET lease_expires_at = lease_expires_at - 120000000 WHERE stage = 2")
        db.execute("UPDATE worker SET beat_at = beat_at - 120000000")
    db.close()
    examined = ropewalk("doctor", "--json")
    assert (examined.code, examined.json["level"]) == (1, "warn")
    warnings = findings(examined.json, "warn")
    assert warnings.keys() == {"workers", "leases"}
    assert warnings["workers"] == "no worker is alive"
    assert re.fullmatch(
        r"1 job of dead workers under leases that are over, the oldest for \S+ (s|min), .*", warnings["leases"]
    )
    assert "gave no sign for a whole lease" in findings(examined.json, "note")["workers"]
    start()  # does what the doctor says
    until(lambda: "leases" not in findings(ropewalk("doctor", "--json").json, "warn"), "it is taken back")


def test_a_damaged_file(ropewalk: Run, app: App, place: Path) -> None:
    app.sync.enqueue_many(app.named("add", {"a": number, "b": 0}) for number in range(2000))
    app.sync.close()
    path = place / "jobs.db"
    with path.open("r+b") as file:
        file.seek(-20 * 4096, os.SEEK_END)
        file.write(b"\xff" * 4096)
    assert ropewalk("doctor", "--json").code == 1, "nobody looked at that page"
    examined = ropewalk("doctor", "--deep", "--json")
    assert (examined.code, examined.json["level"]) == (3, "bad")
    assert findings(examined.json, "bad")["integrity"].startswith("the file is damaged: ")


def test_a_store_that_is_not_there_yet(ropewalk: Run, place: Path) -> None:
    assert ropewalk("doctor").code == 3
    assert list(place.iterdir()) == [], "looking makes nothing"
    (place / "jobs.db").touch()
    examined = ropewalk("doctor", "--json")
    assert (examined.code, findings(examined.json, "bad")) == (
        3,
        {"schema": "there is no schema here yet: 0001_first"},
    )
    assert (place / "jobs.db").stat().st_size == 0


def test_another_programs_file(ropewalk: Run, place: Path) -> None:
    with sqlite3.connect(place / "jobs.db") as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()
    examined = ropewalk("doctor", "--json")
    assert examined.code == 3
    assert "is a database of another program" in findings(examined.json, "bad")["store"]


async def test_a_file_on_a_network(url: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that refuses it says so; one that was told to take it shows it all the same."""
    async with App(url, jobs=[forgotten]) as app:
        await app.enqueue(forgotten())
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"40 22 0:35 / {place} rw shared:9 - nfs4 server:/export rw\n")
    monkeypatch.setattr(filesystem, "_MOUNTS", mounts)
    refusing = App(url)
    [refused] = await refusing.examine()
    await refusing.close()
    assert (refused.level, refused.subject) == ("bad", "store")
    assert "could lose acknowledged jobs" in refused.found
    async with App(url, allow_weaker_durability=True) as allowed:
        found = {each.subject: each for each in await allowed.examine()}
    assert found["durability"].level == "bad"
    assert "network file system (nfs4)" in found["durability"].found


async def test_a_file_without_a_write_ahead_log(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without shared memory, as the dot-file locking of SQLite's own has it; and no fsync at all."""
    connect = sqlite.connect

    def without_shared_memory(path: Path | str, **options: Any) -> Any:
        if isinstance(path, Path):
            return connect(f"{path.as_uri()}?vfs=unix-dotfile", uri=True, **options)
        return connect(path, **options)

    monkeypatch.setattr(sqlite, "connect", without_shared_memory)
    monkeypatch.setattr(opening, "_SETTINGS", ("PRAGMA synchronous = OFF",))
    async with App(url, allow_weaker_durability=True) as app:
        await app.queues()
        found = {each.subject: each for each in await app.examine()}
    assert found["durability"].level == "bad"
    assert "journal_mode is 'delete' instead of 'wal', synchronous is 0 instead of 2" in found["durability"].found


async def test_memory_has_nothing_that_lasts() -> None:
    app = App("memory://", jobs=[forgotten])
    async with app.running():
        found = {each.subject: (each.level.value, each.found) for each in await app.examine()}
    assert found["durability"][0] == "note"
    assert "wake-ups" not in found
    assert found["workers"] == ("ok", "1 worker alive, 0 of 10 slots taken")


def test_a_store_of_another_process_cannot_be_examined(ropewalk: Run) -> None:
    refused = ropewalk("doctor", ROPEWALK_URL="memory://")
    assert (refused.code, refused.out) == (2, "")
    assert "which only its own process can reach" in refused.err


def test_a_server_that_does_not_answer(ropewalk: Run) -> None:
    examined = ropewalk("doctor", "--json", ROPEWALK_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (examined.code, set(findings(examined.json, "bad"))) == (3, {"store"})
