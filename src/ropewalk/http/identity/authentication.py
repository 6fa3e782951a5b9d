"""Who sends a request: the tokens and sessions of the store, and how often an address may guess."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.identity.identity import Identity
from ropewalk.http.identity.sessions import Sessions
from ropewalk.http.identity.tokens import Tokens
from ropewalk.http.request import Request
from ropewalk.ports.runtime import Runtime

FAILURES_MAX: Final = 20
"""How many wrong proofs an address may send in FAILURES_SECONDS."""
FAILURES_SECONDS: Final = 60.0
ADDRESSES_MAX: Final = 10_000
"""How many addresses are remembered."""


class StoredIdentities:
    """Authenticates by a bearer token, else by the cookie of a session."""

    def __init__(self, tokens: Tokens, sessions: Sessions, guesses: Guesses) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._guesses = guesses

    async def __call__(self, request: Request) -> Identity | None:
        """Raises HttpError for an address that has guessed too often."""
        header = request.headers.get("authorization")
        if header is None and "cookie" not in request.headers:
            return None
        self._guesses.check(request.peer)
        if header is None:
            identity = await self._sessions.proved_by(request)
        else:
            scheme, _, text = header.partition(" ")
            token = await self._tokens.proved_by(text.strip()) if scheme.lower() == "bearer" else None
            identity = None if token is None else token.identity
        if identity is None:
            self._guesses.count(request.peer)
        return identity


class Guesses:
    """Counts wrong proofs by address."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def check(self, address: str | None) -> None:
        """Raises HttpError if this address has sent too many wrong proofs."""
        began, failures = self._failures.get(address or "", (0.0, 0))
        left = began + FAILURES_SECONDS - self._runtime.monotonic()
        if failures >= FAILURES_MAX and left > 0:
            message = "too many requests from this address had no valid token: wait, and check the token"
            raise HttpError(
                ErrorCode.QUOTA_EXCEEDED,
                message,
                limit="authentication",
                current=failures,
                maximum=FAILURES_MAX,
                retry_after=left,
            )

    def count(self, address: str | None) -> None:
        now, name = self._runtime.monotonic(), address or ""
        began, failures = self._failures.get(name, (now, 0))
        if now - began >= FAILURES_SECONDS:
            began, failures = now, 0
        self._failures[name] = (began, failures + 1)
        self._failures.move_to_end(name)
        if len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)
