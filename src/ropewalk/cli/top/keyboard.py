"""Keys as they are pressed, without echo and without Enter; the terminal is left as it was found."""

from __future__ import annotations

import asyncio
import os
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager

from ropewalk.cli.top.controls import Key, keys_in


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
