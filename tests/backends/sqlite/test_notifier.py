"""Wake-ups by socket, and by looking at the file where there is none."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from ropewalk.backends.sqlite import SqliteStore, listening, notifier
from ropewalk.backends.sqlite.listening import ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX, HintSocket, directory_for
from ropewalk.backends.sqlite.notifier import encode_hint
from ropewalk.ports.notifier import Hint
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import claim_request
from tests.backends.sqlite.conftest import plain, submit


class Heard:
    """Hints as they arrive, on whatever thread."""

    def __init__(self, store: SqliteStore) -> None:
        self.hints: list[Hint] = []
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self.unsubscribe = store.notifier.subscribe(self._put)

    async def first(self, wanted: Hint) -> None:
        async with asyncio.timeout(10):
            while wanted not in self.hints:
                self._arrived.clear()
                await self._arrived.wait()

    def _put(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._loop.call_soon_threadsafe(self._arrived.set)


def without_directory(path: Path, _: pytest.MonkeyPatch) -> None:
    directory_for(path).touch()


def without_unix_sockets(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "socket", SimpleNamespace(socket=socket.socket, SOCK_DGRAM=socket.SOCK_DGRAM))


@pytest.mark.parametrize("lacking", [without_directory, without_unix_sockets])
async def test_what_others_commit_is_noticed_without_sockets(
    store: SqliteStore,
    path: Path,
    lacking: Callable[[Path, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lacking(path, monkeypatch)
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(listening, "LOOK_SECONDS", 0.01)
    other = SqliteStore(path, SystemRuntime())
    heard = Heard(store)
    assert "looking at the file instead" in caplog.text
    await looked_once(store)
    await submit(other, plain("a"))
    await heard.first(Hint(many=True))
    assert not any(hint.control for hint in heard.hints)
    await other.pause("default", "q", paused=True)
    await heard.first(Hint(many=True, control=True))
    other.notifier.publish(Hint(ready=("q",)))  # goes nowhere, and says nothing about it
    heard.unsubscribe()
    await other.close()


async def test_looking_for_work_wakes_nobody(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or two idle workers would wake one another for ever."""
    monkeypatch.setattr(listening, "LOOK_SECONDS", 0.001)
    other = SqliteStore(path, SystemRuntime())
    await submit(other, plain("a"))
    assert len((await other.claim(claim_request())).jobs) == 1
    heard = Heard(store)
    for _ in range(20):
        await looked_once(store)
        for each in (store, other):
            assert (await each.claim(claim_request())).jobs == []
    assert heard.hints == []
    heard.unsubscribe()
    await other.close()


async def looked_once(store: SqliteStore) -> None:
    """Until the watch has read the file's marks once more."""
    looked = asyncio.Event()
    listener = store._notifier._listening
    assert listener is not None
    loop, marks = asyncio.get_running_loop(), listener._marks

    async def counted() -> tuple[int, int] | None:
        found = await marks()
        loop.call_soon_threadsafe(looked.set)
        return found

    listener._marks = counted
    async with asyncio.timeout(10):
        await looked.wait()
    listener._marks = marks


async def test_the_thread_ends_some_time_after_the_last_listener_left(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(listening, "LINGER_LOOKS", 5)
    first, second = Heard(store), Heard(store)
    assert len(list(directory_for(path).iterdir())) == 1
    kept = store._notifier._listening
    first.unsubscribe()
    for _ in range(20):
        await looked_once(store)
    assert store._notifier._listening is kept, "one still listens"
    assert kept is not None
    second.unsubscribe()
    await kept.thread.finished()
    assert not directory_for(path).exists()
    again = Heard(store)
    hint = Hint(control=True)
    notifier.send(directory_for(path), encode_hint(hint), but_not_to=None)
    await again.first(hint)


async def test_a_publisher_hears_itself_once(store: SqliteStore, path: Path) -> None:
    heard, other = Heard(store), SqliteStore(path, SystemRuntime())
    own, last = Hint(ready=("own",)), Hint(ready=("last",))
    store.notifier.publish(own)
    other.notifier.publish(last)  # arrives after whatever came by the same socket
    await heard.first(last)
    assert heard.hints == [own, last]
    heard.unsubscribe()
    await other.close()


async def test_listeners_survive_closing_and_opening(store: SqliteStore, path: Path) -> None:
    heard = Heard(store)
    await store.close()
    await store.open()
    other = SqliteStore(path, SystemRuntime())
    hint = Hint(finished=("a",))
    other.notifier.publish(hint)
    await heard.first(hint)
    heard.unsubscribe()
    await other.close()


async def test_the_socket_of_a_dead_listener_is_removed(store: SqliteStore, path: Path) -> None:
    dead = HintSocket(directory_for(path), "dead")
    dead.socket.close()
    assert dead.address.exists()
    store.notifier.publish(Hint(control=True))
    assert not dead.address.exists()
    directory_for(path).rmdir()


async def test_a_listener_that_is_stuck_blocks_nobody(store: SqliteStore, path: Path) -> None:
    stuck = HintSocket(directory_for(path), "stuck")
    async with asyncio.timeout(10):
        for _ in range(5000):  # far more than its buffer holds
            store.notifier.publish(Hint(ready=("default",)))
    assert stuck.take() == b'{"ready":["default"]}'
    stuck.close()


async def test_what_is_no_hint_is_passed_over(store: SqliteStore, path: Path) -> None:
    heard = Heard(store)
    for message in (b"", b"{", b'{"ready": 7}', b"\xff"):
        notifier.send(directory_for(path), message, but_not_to=None)
    hint = Hint(finished=("a",))
    notifier.send(directory_for(path), encode_hint(hint), but_not_to=None)
    await heard.first(hint)
    assert heard.hints == [hint]
    heard.unsubscribe()


@pytest.mark.parametrize(
    "hint",
    [
        Hint(finished=tuple(f"job-{number}" for number in range(10_000)), ready=("a",)),
        Hint(ready=tuple(f"queue-{number}" for number in range(10_000)), control=True),
        Hint(ready=("a",), finished=("b",)),
    ],
)
def test_a_long_hint_is_cut_to_fit(hint: Hint) -> None:
    message = encode_hint(hint)
    assert len(message) <= MESSAGE_BYTES_MAX
    sent = msgspec.json.decode(message, type=Hint)
    assert sent == hint or sent.many
    assert sent.control == hint.control
    assert set(sent.finished) <= set(hint.finished)


def test_a_long_path_has_its_sockets_in_the_temporary_directory(tmp_path: Path) -> None:
    near, far = Path("/srv/jobs.db"), tmp_path / ("x" * 100) / "jobs.db"
    assert directory_for(near) == Path("/srv/jobs.db-wake")
    assert directory_for(far) != directory_for(tmp_path / ("y" * 100) / "jobs.db")
    box = HintSocket(directory_for(far), "a" * 100)
    assert len(bytes(box.address)) <= ADDRESS_BYTES_MAX
    assert box.address.parent.stat().st_mode & 0o077 == 0
    box.close()
