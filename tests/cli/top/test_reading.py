"""H5: what `ropewalk top` asks an app for, and how it goes on with keys, and without the store."""

from __future__ import annotations

import asyncio
import os
import pty
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ropewalk import Abort, App, StoreUnavailable, job
from ropewalk.cli.top.controls import Key, View
from ropewalk.cli.top.screen import Keyboard, Screen, listening
from ropewalk.cli.top.snapshot import Snapshot
from ropewalk.cli.top.snapshot_reader import SnapshotReader
from ropewalk.domain.statistics.statistics import Flow, Share, Slice, Statistics
from ropewalk.domain.time import MINUTE, Seconds
from ropewalk.runtime.system import SystemRuntime


@job(max_attempts=1)
async def break_(how: str) -> None:
    raise Abort(how)


class Counts:
    """As an app counts; the numbers are the test's."""

    def __init__(self) -> None:
        self.flow = Flow(completed=30, failed=1)
        self.asked: list[tuple[Seconds, int]] = []
        self.error: Exception | None = None

    async def stats(self, *, last: Seconds, slices: int) -> Statistics:
        self.asked.append((last, slices))
        if self.error is not None:
            raise self.error
        idle = Share(queue=None, type="idle", flow=Flow(submitted=3))
        return Statistics(
            since=0,
            until=2 * MINUTE,
            slice_us=MINUTE,
            flow=self.flow,
            line=(Slice(at=0, flow=Flow(completed=120)), Slice(at=MINUTE, flow=self.flow)),
            shares=(Share(queue=None, type="break_", flow=self.flow), idle),
            standing=(),
        )


@pytest_asyncio.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App(f"sqlite:///{tmp_path}/jobs.db", jobs=[break_]) as app:
        yield app


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def reader(app: App, counts: Counts) -> SnapshotReader:
    return SnapshotReader(app, counts, SystemRuntime(), url="sqlite:///jobs.db", tenant="default", last_seconds=120)


async def test_everything_is_asked_for(app: App, reader: SnapshotReader, counts: Counts) -> None:
    await app.create_schedule("later", every=3600, job=break_("x"))
    await app.create_schedule("sooner", every=60, job=break_("x"))
    await app.create_schedule("paused", every=1, job=break_("x"))
    await app.pause_schedule("paused")
    await app.enqueue(break_("x"), queue="mail", delay=3600)
    async with app.worker(concurrency=3) as worker:
        failed = await app.enqueue(break_("to\x1bo bad"))
        await app.wait(failed.id, timeout=10)
        snapshot = await reader.read()
        worker_id = worker.id
    assert counts.asked == [(120, 60)]
    assert [(queue.name, queue.delayed, queue.ready) for queue in snapshot.queues] == [("mail", 1, 0)]
    [line] = snapshot.workers
    assert (line.id, line.state, line.slots, line.serves) == (worker_id, "alive", 3, "break_")
    [failure] = snapshot.failures
    assert (failure.id, failure.state, failure.error) == (failed.id, "failed", r"Abort: to\x1bo bad")
    assert [(each.name, each.finished, each.failed) for each in snapshot.types] == [("break_", 31, 1)]
    assert snapshot.line[0] == 2.0
    assert snapshot.next_fire is not None and snapshot.next_fire[0] == "sooner"


async def test_a_queue_that_empties_keeps_its_row(app: App, reader: SnapshotReader) -> None:
    for name in ("b", "a"):
        await app.pause(name)
    assert [queue.name for queue in (await reader.read()).queues] == ["a", "b"]
    await app.resume("b")
    assert await app.queues() != []
    assert [(queue.name, queue.paused) for queue in (await reader.read()).queues] == [("a", True), ("b", False)]


async def test_failures_are_read_again_when_there_are_more(app: App, reader: SnapshotReader, counts: Counts) -> None:
    async with app.worker():
        first = await app.enqueue(break_("first"))
        await app.wait(first.id, timeout=10)
        assert [each.id for each in (await reader.read()).failures] == [first.id]
        second = await app.enqueue(break_("second"))
        await app.wait(second.id, timeout=10)
    assert [each.id for each in (await reader.read()).failures] == [first.id], "nothing said that it changed"
    counts.flow = Flow(completed=30, failed=2)
    assert [each.id for each in (await reader.read()).failures] == [second.id, first.id]


class Drawn:
    """What was drawn; each frame answers with the next key."""

    def __init__(self, keyboard: Keyboard, keys: list[Key]) -> None:
        self.frames: list[tuple[Snapshot, View]] = []
        self._keyboard = keyboard
        self._keys = keys

    def draw(self, snapshot: Snapshot, view: View) -> None:
        self.frames.append((snapshot, view))
        self._keyboard.press(self._keys.pop(0))


async def played(app: App, reader: SnapshotReader, *keys: Key) -> list[tuple[Snapshot, View]]:
    keyboard = Keyboard()
    drawn = Drawn(keyboard, [*keys, "quit"])
    screen = Screen(app, reader, SystemRuntime(), keyboard, drawn.draw)
    async with asyncio.timeout(20):
        await screen.run(await reader.read(), View(every=60.0))
    return drawn.frames


async def test_a_queue_is_chosen_paused_and_resumed(app: App, reader: SnapshotReader) -> None:
    for name in ("a", "b"):
        await app.enqueue(break_("x"), queue=name, delay=3600)
    frames = await played(app, reader, "pause", "down", "down", "pause", "pause", "slower")
    assert [view.selected for _, view in frames] == [None, None, 0, 1, 1, 1, 1]
    paused = [[queue.paused for queue in snapshot.queues] for snapshot, _ in frames]
    assert paused == [[False, False]] * 4 + [[False, True], [False, False], [False, False]]


async def test_without_the_store_the_last_frame_stays(app: App, reader: SnapshotReader, counts: Counts) -> None:
    keyboard = Keyboard()
    frames: list[Snapshot] = []

    def draw(snapshot: Snapshot, view: View) -> None:
        frames.append(snapshot)
        counts.error = StoreUnavailable("gone") if len(frames) == 1 else None
        if len(frames) == 3:
            keyboard.press("quit")

    screen = Screen(app, reader, SystemRuntime(), keyboard, draw)
    async with asyncio.timeout(20):
        await screen.run(await reader.read(), View(every=0.05))
    assert [frame.trouble for frame in frames] == [None, "the store does not answer, trying again: gone", None]
    assert frames[1].now == frames[0].now < frames[2].now


async def test_keys_are_read_from_a_terminal_that_is_left_as_it_was() -> None:
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        with listening(slave) as keyboard:
            assert termios.tcgetattr(slave) != before
            os.write(master, b"\x1b[Bp")
            assert [await keyboard.next(10), await keyboard.next(10)] == ["down", "pause"]
            assert await keyboard.next(0) is None
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)
