"""What a server keeps of the writes that it acknowledges, according to its settings.

A reload of the server's configuration changes the settings of open sessions. So each connection that writes reads them
when it is made and again now and then, after it has answered a caller, so that nobody waits for that.
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
"""Each connection that is in use reads the settings again this often."""

_SETTINGS: Final = b"""
SELECT
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names')
"""
_log = logging.getLogger("ropewalk.postgres")


class ServerSettings(Struct, frozen=True):
    """The settings of a session that determine what survives a power loss."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    standbys: str

    @property
    def weakness(self) -> str | None:
        """Why an acknowledged job may not survive a power loss; None if it survives."""
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
        """What an acknowledged write survives under these settings."""
        if self.weakness is not None:
            return Durability.D1
        return Durability.D3 if self.standbys else Durability.D2


def settings_of(db: Connection) -> ServerSettings:
    """Reads the settings of the session."""
    found = db.execute(_SETTINGS).fetchone()
    assert found is not None
    return ServerSettings(*found)


class DurabilityWatch:
    """Remembers the settings that the connections of one store found, and reports when they have become weaker. It may
    be used from any thread."""

    def __init__(self, runtime: Runtime, place: str, *, allowed: bool) -> None:
        """`allowed` says that the app accepts that acknowledged jobs may be lost."""
        self._runtime = runtime
        self._place = place
        self._allowed = allowed
        self._lock = threading.Lock()
        self._found: dict[object, ServerSettings] = {}
        """The settings that each connection found last."""
        self._looked_at: dict[object, float] = {}
        """The monotonic time at which each connection read them last."""
        self._reported: ServerSettings | None = None
        """The weakest settings when there was last something to report."""
        self.on_weakened: Callable[[str], object] = lambda _: None
        """This is called with a message when the settings have become weaker than the app allows."""

    @property
    def level(self) -> Durability:
        """What an acknowledged write survives. As long as no settings are known, the defaults of a server are
        assumed."""
        with self._lock:
            weakest = self._weakest()
        return Durability.D2 if weakest is None else weakest.level

    def due(self, connection: object) -> bool:
        """Whether it is time for this connection to read the settings again."""
        return self._runtime.monotonic() - self._looked_at.get(connection, 0.0) >= LOOK_SECONDS

    def opened(self, connection: object, settings: ServerSettings) -> None:
        """Records the settings under which a connection was made."""
        self.closed(self)
        self.found(connection, settings)

    def found(self, connection: object, settings: ServerSettings) -> None:
        """Records the settings that a connection found, and reports a change."""
        with self._lock:
            before, known = self._found.get(connection), self._weakest()
            if before is not None and before != settings:
                self._found.clear()  # A reload concerns all connections: the others will read their settings again.
            self._found[connection] = settings
            self._looked_at[connection] = self._runtime.monotonic()
            message = self._change_to_report(known)
        if message is not None:
            self._report(message, first=known is None)

    def refused(self, settings: ServerSettings) -> None:
        """Records that no connection was made because of these settings. What was acknowledged before is in danger,
        too."""
        if self._found:
            self.found(self, settings)

    def closed(self, connection: object) -> None:
        """Forgets a connection that was closed for good."""
        with self._lock:
            if len(self._found) > 1:
                self._found.pop(connection, None)
            self._looked_at.pop(connection, None)

    def _weakest(self) -> ServerSettings | None:
        """Returns the weakest of the settings that the connections found."""
        return min(self._found.values(), key=lambda each: (each.level.name, each.weakness or ""), default=None)

    def _change_to_report(self, known: ServerSettings | None) -> str | None:
        """Returns what to report, once for each change."""
        weakest = self._weakest()
        assert weakest is not None
        reported, self._reported = self._reported, weakest
        before = known or reported
        if weakest.weakness is not None:
            return None if reported is not None and reported.weakness == weakest.weakness else weakest.weakness
        if before is not None and weakest.level.name < before.level.name:
            return "synchronous_standby_names is empty: a commit waits for no standby"
        return None

    def _report(self, what: str, *, first: bool) -> None:
        if self._allowed:
            _log.warning("%s could lose acknowledged jobs, as allowed: %s", self._place, what)
        elif not first:
            self.on_weakened(
                f"{self._place} could lose acknowledged jobs since its settings were changed: {what}. Change that back "
                "(ALTER SYSTEM, ALTER DATABASE or ALTER ROLE, then pg_reload_conf()), or allow it with "
                "allow_weaker_durability=True"
            )
