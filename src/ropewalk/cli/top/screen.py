"""The loop of `ropewalk top`: it reads a snapshot, draws it, and waits for a key or the next refresh.

While the store is unavailable, the last frame stays and says so. Keys are read as they are pressed, without echo and
without Enter; afterwards the terminal has its former settings again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

from msgspec import structs
from rich.console import Console
from rich.live import Live

from ropewalk.cli.top.controls import Key, View, keys_in, moved
from ropewalk.cli.top.frame import frame
from ropewalk.cli.top.snapshot import Snapshot
from ropewalk.cli.top.snapshot_reader import SnapshotReader
from ropewalk.client.store_client import StoreClient
from ropewalk.errors import OutcomeUnknown, StoreUnavailable
from ropewalk.ports.runtime import Runtime


class Keyboard:
    """The keys that were pressed and not handled yet."""

    def __init__(self) -> None:
        self._pressed: asyncio.Queue[Key] = asyncio.Queue()

    async def next(self, within_seconds: float) -> Key | None:
        """Return the next key, or None if none is pressed within this time."""
        try:
            async with asyncio.timeout(max(0.0, within_seconds)):
                return await self._pressed.get()
        except TimeoutError:
            return None

    def press(self, key: Key) -> None:
        """Add a key."""
        self._pressed.put_nowait(key)

    def read(self, descriptor: int) -> None:
        """Add the keys that were typed in the terminal."""
        for key in keys_in(os.read(descriptor, 64).decode(errors="ignore")):
            self.press(key)


@contextmanager
def listening(descriptor: int) -> Generator[Keyboard]:
    """Read keys from the terminal on the running event loop, until the block ends."""
    keyboard, loop = Keyboard(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, keyboard.read, descriptor)
    try:
        yield keyboard
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def show(client: StoreClient, reader: SnapshotReader, runtime: Runtime, view: View, *, descriptor: int) -> None:
    """Show the live view until somebody quits."""
    console = Console()
    snapshot = await reader.read()  # raises if the store cannot be reached at the start
    with listening(descriptor) as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keyboard.press, "quit")
        try:
            await Screen(client, reader, runtime, keyboard, lambda shown, how: _draw(live, shown, how)).run(
                snapshot, view
            )
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


class Screen:
    """A screen refreshes the view and reacts to keys; `draw` shows a snapshot."""

    def __init__(
        self,
        client: StoreClient,
        reader: SnapshotReader,
        runtime: Runtime,
        keyboard: Keyboard,
        draw: Callable[[Snapshot, View], object],
    ) -> None:
        self._client = client
        self._reader = reader
        self._runtime = runtime
        self._keyboard = keyboard
        self._draw = draw

    async def run(self, snapshot: Snapshot, view: View) -> None:
        """Begin with this snapshot and view, and return when somebody quits."""
        looked_at = self._runtime.monotonic()
        while True:
            self._draw(snapshot, view)
            key = await self._keyboard.next(looked_at + view.every - self._runtime.monotonic())
            if key == "quit":
                return
            if key is not None:
                view = moved(view, key, len(snapshot.queues))
            if key is None or key == "pause":
                looked_at = self._runtime.monotonic()
                snapshot = await self._look(snapshot, view, key)

    async def _look(self, before: Snapshot, view: View, key: Key | None) -> Snapshot:
        try:
            if key == "pause" and view.selected is not None and view.selected < len(before.queues):
                queue = before.queues[view.selected]
                await (self._client.resume(queue.name) if queue.paused else self._client.pause(queue.name))
            return await self._reader.read()
        except (StoreUnavailable, OutcomeUnknown) as error:
            return structs.replace(before, trouble=f"the store does not answer, trying again: {error}")


def _draw(live: Live, snapshot: Snapshot, view: View) -> None:
    width, height = live.console.size
    shown = frame(snapshot, width=width, height=height, every=view.every, selected=view.selected)
    live.update(shown, refresh=True)
