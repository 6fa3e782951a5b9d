"""What all requests to one server share: the app, its store, and whether the server is about to stop."""

from __future__ import annotations

import asyncio
from typing import Final

from ropewalk.app import App
from ropewalk.client.app_state import AppState
from ropewalk.client.store_client import StoreClient
from ropewalk.client.views.jobs import Describer
from ropewalk.definitions.registry import Registry
from ropewalk.errors import StoreUnavailable
from ropewalk.http.errors import HttpError
from ropewalk.http.events.feed import Feed
from ropewalk.http.events.watching import Watcher
from ropewalk.http.identity.audit import Audit
from ropewalk.http.identity.authentication import Guesses
from ropewalk.http.identity.identity import Authenticate, Identity
from ropewalk.http.identity.rates import RequestRates
from ropewalk.http.identity.sessions import Sessions
from ropewalk.http.identity.tokens import Tokens
from ropewalk.http.remote_workers.contact import ClaimLines
from ropewalk.http.request import Request
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Durability, Store


class Service:
    """One server's share of an app. It keeps nothing about clients or workers but the calls that wait just now: every
    server can answer every call."""

    def __init__(self, app: App) -> None:
        self.app: Final = app
        self.app_state: Final[AppState] = app._app_state  # the service is a part of this package, beside the client
        self.describe: Final = Describer(self.app_state.registry, self.app_state.codec, self.app_state.secret_keys)
        self.tokens: Final = Tokens(self.app_state)
        self.sessions: Final = Sessions(self.app_state, self.tokens)
        self.guesses: Final = Guesses(self.app_state.runtime)
        self.rates: Final = RequestRates(self.app_state.runtime)
        self.audit: Final = Audit(self.app_state)
        self.feed: Final = Feed(self.app_state)
        self.watcher: Final = Watcher(self.app_state)
        self.authenticate: Authenticate | None = None
        """Finds out who sends a request; the application sets it."""
        in_process = self.app_state.store.durability is Durability.D0
        self.claim_lines: Final = ClaimLines(self.app_state.runtime, in_process=in_process)
        self.draining: Final = asyncio.Event()
        """Set when the server stops: waits and streams end then."""

    @property
    def store(self) -> Store:
        return self.app_state.store

    @property
    def registry(self) -> Registry:
        return self.app_state.registry

    @property
    def runtime(self) -> Runtime:
        return self.app_state.runtime

    def client(self, tenant: str) -> StoreClient:
        """The verbs of the library, for the jobs of a tenant."""
        return self.app.operator(tenant)

    async def is_valid(self, request: Request, identity: Identity) -> bool:
        """Whether a request that goes on for long still has its identity. A store that is away takes none away."""
        assert self.authenticate is not None
        try:
            return await self.authenticate(request) == identity
        except (HttpError, StoreUnavailable):
            return True

    def close(self) -> None:
        """Ends what this server does by itself."""
        self.feed.close()
        self.watcher.close()

    async def open(self) -> None:
        """Opens the store if nobody has."""
        if not self.app_state.is_open:
            await self.app_state.open()
