"""Every reason not to open a file says what is wrong, with which file, and what to do."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ropewalk.backends.sqlite import SqliteStore, filesystem, library, opening
from ropewalk.backends.sqlite.filesystem import mounted_type
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite, warn_about_library
from ropewalk.errors import InvalidInput, SchemaMismatch, StoreRefused, StoreUnavailable, WeakDurability
from ropewalk.ports.store.core import Durability
from ropewalk.runtime.system import SystemRuntime
from tests.backends.sqlite.conftest import output_of, plain, submit

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:35 / /mnt/share rw shared:9 - nfs4 server:/export rw,vers=4.2
41 22 0:36 / /mnt/share/local rw - xfs /dev/sdb1 rw
42 22 0:37 / /mnt/with\\040space rw - fuse.sshfs me@host: rw
43 22 0:38 / /mnt/hidden rw - ext4 /dev/sdc1 rw
44 22 0:39 / /mnt/hidden rw - cifs //server/share rw
"""


async def refused(path: Path, **options: bool) -> Exception:
    store = SqliteStore(path, SystemRuntime(), **options)
    try:
        await store.open()
    except Exception as error:
        assert str(path) in str(error)
        return error
    finally:
        await store.close()
    pytest.fail(f"{path} was opened")


@pytest.mark.parametrize("path", [":memory:", ""])
def test_a_path_that_is_no_file(path: str) -> None:
    with pytest.raises(InvalidInput, match="memory://") as caught:
        SqliteStore(path, SystemRuntime())
    assert caught.value.field == "path"


async def test_nothing_is_touched_before_it_is_opened(path: Path) -> None:
    store = SqliteStore(path, SystemRuntime())
    assert not path.exists()
    await store.close()
    assert not path.exists()


async def test_the_directory_is_missing(tmp_path: Path) -> None:
    error = await refused(tmp_path / "missing" / "jobs.db")
    assert isinstance(error, InvalidInput)
    assert "does not exist: create it" in str(error)


async def test_the_path_is_a_directory(tmp_path: Path) -> None:
    error = await refused(tmp_path)
    assert isinstance(error, InvalidInput)
    assert "is a directory" in str(error)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_no_permission_to_write(tmp_path: Path, start: Callable[..., subprocess.Popen[str]], what: str) -> None:
    path = tmp_path / "jobs.db"
    path.touch()
    path.chmod(0o444 if what == "file" else 0o666)
    tmp_path.chmod(0o555 if what == "directory" else 0o777)
    told = output_of(start("open_as_nobody", path))
    tmp_path.chmod(0o755)
    assert f"{path if what == 'file' else tmp_path} is not writable for this user: change its permissions" in told


async def test_not_a_database(path: Path) -> None:
    path.write_text("dear diary\n" * 100)
    error = await refused(path)
    assert isinstance(error, StoreRefused)
    assert "it is not an SQLite database" in str(error)


async def test_a_damaged_file(path: Path) -> None:
    store = SqliteStore(path, SystemRuntime())
    await submit(store, *(plain(str(number), input=b"x" * 500) for number in range(200)))
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    error = await refused(path)
    assert type(error) is StoreRefused
    assert "the file is damaged; restore it" in str(error)


@pytest.mark.parametrize("prepare", ["CREATE TABLE recipe (name)", "PRAGMA application_id = 77"])
async def test_a_database_of_another_program(path: Path, prepare: str) -> None:
    db = sqlite.connect(path)
    db.execute(prepare)
    db.commit()
    db.close()
    error = await refused(path)
    assert isinstance(error, SchemaMismatch)
    assert "another program" in str(error)


@pytest.mark.parametrize("compat", ["additive", "breaking"])
async def test_a_newer_schema(path: Path, compat: str) -> None:
    """An addition is none of our business; a breaking change is."""
    store = SqliteStore(path, SystemRuntime())
    await submit(store, plain("a"))
    await store.close()
    db = sqlite.connect(path)
    db.execute("INSERT INTO migration VALUES (99, 'later', ?)", (compat,))
    db.commit()
    db.close()
    if compat == "additive":
        assert (await store.get("default", ["a"])).jobs.keys() == {"a"}
        await store.close()
    else:
        error = await refused(path)
        assert isinstance(error, SchemaMismatch)
        assert "schema 99" in str(error)
        assert "upgrade ropewalk" in str(error)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/jobs.db", "ext4"),
        ("/mnt/share/jobs.db", "nfs4"),
        ("/mnt/share/local/jobs.db", "xfs"),
        ("/mnt/shared/jobs.db", "ext4"),
        ("/mnt/with space/jobs.db", "fuse.sshfs"),
        ("/mnt/hidden/jobs.db", "cifs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    assert mounted_type(path, MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
async def test_a_network_file_system(path: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"40 22 0:35 / {path.parent} rw shared:9 - {kind} server:/export rw\n")
    monkeypatch.setattr(filesystem, "_MOUNTS", mounts)
    error = await refused(path)
    assert isinstance(error, WeakDurability)
    assert kind in str(error)
    assert "allow_weaker_durability=True" in str(error)
    assert not path.exists()
    await accepted_as_weaker(path)


async def test_no_write_ahead_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without shared memory, as the dot-file locking of SQLite's own has it."""
    connect = sqlite.connect

    def without_shared_memory(path: Path, **options: Any) -> sqlite.Connection:
        made: sqlite.Connection = connect(f"{path.as_uri()}?vfs=unix-dotfile", uri=True, **options)
        return made

    monkeypatch.setattr(sqlite, "connect", without_shared_memory)
    error = await refused(path)
    assert isinstance(error, WeakDurability)
    assert "no write-ahead log is possible" in str(error)
    await accepted_as_weaker(path)


async def accepted_as_weaker(path: Path) -> None:
    store = SqliteStore(path, SystemRuntime(), allow_weaker_durability=True)
    await submit(store, plain("a"))
    assert store.durability is Durability.D1
    await store.close()


async def test_a_local_disk_survives_power_loss(store: SqliteStore) -> None:
    """D2 rests on these two settings."""
    assert store.durability is Durability.D2
    settings = await store._writer.ask(lambda tx: (tx.value("PRAGMA journal_mode"), tx.value("PRAGMA synchronous")))
    assert settings == ("wal", 2)


async def test_nobody_weakens_a_file_that_is_in_use(store: SqliteStore, path: Path) -> None:
    """Why nothing has to be looked at again: the other settings are those of each connection."""
    await submit(store, plain("a"))
    other = sqlite.connect(path, isolation_level=None, timeout=0)
    with pytest.raises(sqlite.OperationalError, match="locked"):
        other.execute("PRAGMA journal_mode = DELETE")
    other.execute("PRAGMA synchronous = OFF")
    other.close()
    await test_a_local_disk_survives_power_loss(store)


async def test_locked_for_too_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path, SystemRuntime())
    await store.open()
    monkeypatch.setattr(library, "LOCKED_SECONDS_MAX", 0.05)
    other = sqlite.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked by another process"):
        await submit(store, plain("a"))
    assert (await store.get("default", ["a"])).jobs == {}, "a reader does not wait for a writer"
    other.execute("ROLLBACK")
    other.close()
    await submit(store, plain("a"))
    await store.close()


class BusyMachine(threading.Event):
    """Lets every step of a wait take a tenth of a second."""

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(None if timeout is None else timeout + 0.1)


async def test_the_wait_for_a_lock_ends_in_time_on_a_busy_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps take longer there than they were meant to: the wait is measured, not counted in steps."""
    store = SqliteStore(path, SystemRuntime())
    await store.open()
    monkeypatch.setattr(library, "LOCKED_SECONDS_MAX", 0.5)
    monkeypatch.setattr(library, "_NEVER_SET", BusyMachine())
    new = path.with_name("new.db")
    others = [sqlite.connect(each, isolation_level=None) for each in (path, new)]
    for other in others:
        other.execute("BEGIN EXCLUSIVE")
    for waiting in (submit(store, plain("a")), asyncio.to_thread(opening.migrate, new)):
        began = time.monotonic()
        with pytest.raises((StoreUnavailable, sqlite.OperationalError), match="locked"):
            await waiting
        assert 0.5 <= time.monotonic() - began < 2
    for other in others:
        other.close()
    await store.close()


async def test_a_file_that_was_replaced_is_not_written_to(path: Path) -> None:
    store = SqliteStore(path, SystemRuntime())
    await submit(store, plain("a"))
    path.rename(path.with_name("moved.db"))
    with pytest.raises(StoreRefused, match="deleted or replaced"):
        await submit(store, plain("b"))
    path.with_name("moved.db").rename(path)
    await submit(store, plain("b"))
    await store.close()


async def test_a_symbolic_link_names_the_same_store(path: Path, store: SqliteStore, tmp_path: Path) -> None:
    """What lies beside the file (its log, its sockets) lies beside the real one."""
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    other = SqliteStore(link, SystemRuntime())
    await submit(other, plain("a"))
    assert (await store.get("default", ["a"])).jobs.keys() == {"a"}
    await other.close()
    assert sorted(each.name for each in link.parent.iterdir()) == ["link.db"]


def test_the_library_to_replace_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for version, warns in (((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 53, 4), False)):
        monkeypatch.setattr(sqlite, "sqlite_version_info", version)
        assert has_wal_reset_bug() is warns
        caplog.clear()
        warn_about_library.cache_clear()
        warn_about_library()
        warn_about_library()
        assert len(caplog.records) == int(warns)
        assert "pip install" in caplog.text or not warns


class Meddled:
    """A connection between whose reads another process tries to create the store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = sqlite.connect(path, timeout=0, isolation_level=None)
        self.meddled = 0

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, statement: str) -> Answer:
        answer = Answer(self._db.execute(statement).fetchall())
        if statement.startswith(("SELECT", "PRAGMA")):
            self.meddled += 1
            with suppress(sqlite.OperationalError):  # it may have to wait: then it comes too late to meddle
                opening.open_writer(self._path, allow_weaker_durability=False).db.close()
        return answer


class Answer(list[tuple[int, ...]]):
    def fetchone(self) -> tuple[int, ...]:
        return self[0]


def test_a_store_that_is_being_created_is_not_taken_for_another_programs(path: Path) -> None:
    db = Meddled(path)
    opening._check_owner(db, path)  # type: ignore[arg-type]  # stands in for a connection
    assert db.meddled == 2


async def test_many_migrate_one_new_file(path: Path) -> None:
    """Whoever comes second waits, and finds it done."""
    runtime = SystemRuntime()
    states = await asyncio.gather(*(SqliteStore(path, runtime).migrate() for _ in range(12)))
    assert {state.newest for state in states} == {1}
    assert (await SqliteStore(path, runtime).schema()).missing == []


async def test_migrating_waits_for_somebody_who_writes(path: Path) -> None:
    db = sqlite.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(SqliteStore(path, SystemRuntime()).migrate())
    await asyncio.wait([waiting], timeout=0.2)
    assert not waiting.done()
    db.execute("ROLLBACK")
    db.close()
    assert (await asyncio.wait_for(waiting, 10)).missing == ["0001_first"]
    assert (await SqliteStore(path, SystemRuntime()).schema()).missing == []
