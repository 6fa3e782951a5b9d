"""A PostgreSQL store whose clock is the server's, as in production, and a server whose clock the test sets.

Only a store that asks the server for the time claims and completes jobs in one statement. So that a test can let time
pass all the same, the time functions of PostgreSQL are hidden, for the sessions of one store, by functions with the
same names that answer what a sequence holds: every session sees at once what it was set to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from psycopg.sql import SQL, Identifier

from ropewalk.backends.postgres import PostgresStore, connections, user_transactions
from ropewalk.domain.time import Instant
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.clock import FakeRuntime
from tests.backends.postgres.backend import PostgresBackend
from tests.servers.schemas import Schemas

_SETTINGS_IN: Final = connections.settings_in
_CLOCK: Final = """
CREATE SCHEMA IF NOT EXISTS {0};
CREATE SEQUENCE IF NOT EXISTS {0}.microseconds;
CREATE OR REPLACE FUNCTION {0}.transaction_timestamp() RETURNS timestamptz LANGUAGE sql AS
    $$SELECT timestamptz 'epoch' + last_value * interval '1 microsecond' FROM {0}.microseconds$$;
CREATE OR REPLACE FUNCTION {0}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
    $$SELECT {0}.transaction_timestamp()$$;
"""


class ServerClock(FakeRuntime):
    """A clock that a test drives, and that shows every change of its time to a server."""

    def __init__(self, show: Callable[[Instant], object]) -> None:
        super().__init__()
        self._show = show
        self._shown: Instant | None = None

    async def settle(self) -> None:
        self.show()
        await super().settle()

    def set_clock(self, *, ahead_seconds: float = 0.0, back_seconds: float = 0.0) -> None:
        super().set_clock(ahead_seconds=ahead_seconds, back_seconds=back_seconds)
        self.show()

    def show(self) -> None:
        now = self.now()
        if now != self._shown:
            self._show(now)
            self._shown = now


class ServerClockBackend(PostgresBackend):
    """Its stores run under the system's runtime and by the server's clock, which is `clock`."""

    def __init__(self, schemas: Schemas, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(schemas, dsn, clock="server")
        self.clock = ServerClock(self._set_clock)
        self._clock_schema = f"{self.schema}_clock"
        schemas.run(SQL(_CLOCK).format(Identifier(self._clock_schema)))
        for module in (connections, user_transactions):
            monkeypatch.setattr(module, "settings_in", self._settings_in)

    async def open(self, runtime: Runtime) -> Store:
        """Every connection is there when it is needed: without one, a claim or a completion takes the long way."""
        self.clock.show()
        store = await super().open(SystemRuntime())
        assert isinstance(store, PostgresStore)
        for session in (store._claims, store._settlements):
            await session.ask(lambda tx: tx.value("SELECT 1"))
        return store

    def _set_clock(self, now: Instant) -> None:
        self._schemas.run(SQL("SELECT setval({}, %s)").format(f"{self._clock_schema}.microseconds"), now)

    def _settings_in(self, schema: str, off: tuple[str, ...] = connections._PLANS) -> dict[str, str]:
        """The settings of a session of ours. Names of PostgreSQL's own come first unless the path says otherwise."""
        settings = _SETTINGS_IN(schema, off)
        if schema == self.schema:
            settings["search_path"] = f"{self._clock_schema}, pg_catalog, {settings['search_path']}"
        return settings
