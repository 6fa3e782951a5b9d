"""What a server keeps of what it acknowledges, by its settings: read when a connection is made, and now and then.

A reload of the server's configuration changes the settings of open sessions. Each connection that writes reads them
again now and then, after it has answered somebody, so that nobody waits for that.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ropewalk.backends.postgres.tx import Connection
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Durability

LOOK_SECONDS: Final = 10.0
"""How often each connection that is in use reads the settings again."""

_SETTINGS: Final = b"""
SELECT
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names')
"""
_log = logging.getLogger("ropewalk.postgres")


class ServerSettings(Struct, frozen=True):
    """Those settings of a session that say what survives a power loss."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    standbys: str

    @property
    def weakness(self) -> str | None:
        """Why an acknowledged job may not survive a power loss."""
        found = [
            f"{name} is {value!r}"
            for name, value, kept in (
                ("fsync", self.fsync, ("on",)),
                ("full_page_writes", self.full_page_writes, ("on",)),
                ("synchronous_commit", self.synchronous_commit, ("on", "remote_apply")),
            )
            if value not in kept
        ]
        return ", ".join(found) or None

    @property
    def level(self) -> Durability:
        if self.weakness is not None:
            return Durability.D1
        return Durability.D3 if self.standbys else Durability.D2


def settings_of(db: Connection) -> ServerSettings:
    """As the session has them at this moment."""
    found = db.execute(_SETTINGS).fetchone()
    assert found is not None
    return ServerSettings(*found)


class DurabilityWatch:
    """What the connections of one store found, and who is told when it is less than before. Used from any thread."""

    def __init__(self, runtime: Runtime, place: str, *, allowed: bool) -> None:
        """`allowed`: the app accepts that acknowledged jobs may be lost."""
        self._runtime = runtime
        self._place = place
        self._allowed = allowed
        self._lock = threading.Lock()
        self._found: dict[object, ServerSettings] = {}
        """By connection: what it found last."""
        self._looked_at: dict[object, float] = {}
        self._told: ServerSettings | None = None
        """The weakest settings at the last time that somebody was told."""
        self.on_weakened: Callable[[str], object] = lambda _: None

    @property
    def level(self) -> Durability:
        """What an acknowledged write survives. Before anything was found: what a server with its defaults keeps."""
        with self._lock:
            weakest = self._weakest()
        return Durability.D2 if weakest is None else weakest.level

    def due(self, who: object) -> bool:
        """Whether it is time for this connection to look again."""
        return self._runtime.monotonic() - self._looked_at.get(who, 0.0) >= LOOK_SECONDS

    def opened(self, who: object, settings: ServerSettings) -> None:
        """A connection was made, under these settings."""
        self.left(self)
        self.found(who, settings)

    def found(self, who: object, settings: ServerSettings) -> None:
        """A connection found these settings now."""
        with self._lock:
            before, known = self._found.get(who), self._weakest()
            if before is not None and before != settings:
                self._found.clear()  # a reload concerns all of them: the others will look again
            self._found[who] = settings
            self._looked_at[who] = self._runtime.monotonic()
            message = self._news(known)
        if message is not None:
            self._tell(message, first=known is None)

    def refused(self, settings: ServerSettings) -> None:
        """No connection was made, because of these settings. What was acknowledged before is in danger as well."""
        if self._found:
            self.found(self, settings)

    def left(self, who: object) -> None:
        """A connection was closed for good."""
        with self._lock:
            if len(self._found) > 1:
                self._found.pop(who, None)
            self._looked_at.pop(who, None)

    def _weakest(self) -> ServerSettings | None:
        return min(self._found.values(), key=lambda each: (each.level.name, each.weakness or ""), default=None)

    def _news(self, known: ServerSettings | None) -> str | None:
        """What to tell, once for each change."""
        weakest = self._weakest()
        assert weakest is not None
        told, self._told = self._told, weakest
        before = known or told
        if weakest.weakness is not None:
            return None if told is not None and told.weakness == weakest.weakness else weakest.weakness
        if before is not None and weakest.level.name < before.level.name:
            return "synchronous_standby_names is empty: a commit waits for no standby"
        return None

    def _tell(self, what: str, *, first: bool) -> None:
        if self._allowed:
            _log.warning("%s could lose acknowledged jobs, as allowed: %s", self._place, what)
        elif not first:
            self.on_weakened(
                f"{self._place} could lose acknowledged jobs since its settings were changed: {what}. Change that back "
                "(ALTER SYSTEM, ALTER DATABASE or ALTER ROLE, then pg_reload_conf()), or allow it with "
                "allow_weaker_durability=True"
            )
