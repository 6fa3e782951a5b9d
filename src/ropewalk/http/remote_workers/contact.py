"""What the claims of remote workers on one server share: which one asks the store next, and how well it answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final

from ropewalk.ports.runtime import Runtime
from ropewalk.runtime.wake import Wake
from ropewalk.worker.contact import StoreContact


class ClaimLines:
    """The waiting claims of one server, in one line for all that can get the same jobs."""

    def __init__(self, runtime: Runtime, *, in_process: bool) -> None:
        self.contact: Final = StoreContact(runtime, in_process=in_process)
        """Claims take back expired leases only while the contact is steady, as those of a local worker."""
        self._lines: dict[Hashable, deque[Wake]] = {}
        self._key_of: dict[Wake, Hashable] = {}

    def is_first(self, key: Hashable, wake: Wake) -> bool:
        """Whether a waiting claim is the one of its line that asks the store. It joins the end of the line if it is not
        in it yet."""
        line = self._lines.setdefault(key, deque())
        if wake not in self._key_of:
            self._key_of[wake] = key
            line.append(wake)
        return line[0] is wake

    def leave(self, wake: Wake) -> None:
        """Removes a claim that is answered or can take nothing, and wakes the one that asks the store from now on."""
        if wake not in self._key_of:
            return
        key = self._key_of.pop(wake)
        line = self._lines[key]
        was_first = line[0] is wake
        line.remove(wake)
        if not line:
            del self._lines[key]
        elif was_first:
            line[0].set()
