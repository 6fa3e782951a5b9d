"""The loop: look, draw, wait for a key or the next look. While the store is away the last frame stays, and says so.

Keys as they are pressed, without echo and without Enter; the terminal is left as it was found.
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
from ropewalk.cli.top.gathering import Gatherer
from ropewalk.cli.top.snapshot import Snapshot
from ropewalk.client.store_client import StoreClient
from ropewalk.errors import OutcomeUnknown, StoreUnavailable
from ropewalk.ports.runtime import Runtime


class Keyboard:
    def __init__(self) -> None:
        self._pressed: asyncio.Queue[Key] = asyncio.Queue()

    async def next(self, within_seconds: float) -> Key | None:
        """The next key, or None when the time is over."""
        try:
            async with asyncio.timeout(max(0.0, within_seconds)):
                return await self._pressed.get()
        except TimeoutError:
            return None

    def press(self, key: Key) -> None:
        self._pressed.put_nowait(key)

    def read(self, descriptor: int) -> None:
        for key in keys_in(os.read(descriptor, 64).decode(errors="ignore")):
            self.press(key)


@contextmanager
def listening(descriptor: int) -> Generator[Keyboard]:
    """On the running loop."""
    keyboard, loop = Keyboard(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, keyboard.read, descriptor)
    try:
        yield keyboard
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def show(client: StoreClient, gatherer: Gatherer, runtime: Runtime, view: View, *, descriptor: int) -> None:
    """Until somebody quits."""
    console = Console()
    snapshot = await gatherer.look()  # a store that cannot be reached at all is an error, not a frame
    with listening(descriptor) as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keyboard.press, "quit")
        try:
            await Screen(client, gatherer, runtime, keyboard, lambda shown, how: _draw(live, shown, how)).run(
                snapshot, view
            )
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


class Screen:
    def __init__(
        self,
        client: StoreClient,
        gatherer: Gatherer,
        runtime: Runtime,
        keyboard: Keyboard,
        draw: Callable[[Snapshot, View], object],
    ) -> None:
        self._client = client
        self._gatherer = gatherer
        self._runtime = runtime
        self._keyboard = keyboard
        self._draw = draw

    async def run(self, snapshot: Snapshot, view: View) -> None:
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
            return await self._gatherer.look()
        except (StoreUnavailable, OutcomeUnknown) as error:
            return structs.replace(before, trouble=f"the store does not answer, trying again: {error}")


def _draw(live: Live, snapshot: Snapshot, view: View) -> None:
    width, height = live.console.size
    shown = frame(snapshot, width=width, height=height, every=view.every, selected=view.selected)
    live.update(shown, refresh=True)
