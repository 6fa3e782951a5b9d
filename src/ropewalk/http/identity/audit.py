"""The audit: who changed what, when and from where. An entry is written before the act and completed after it."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, structs

from ropewalk.client.app_state import AppState
from ropewalk.domain.time import DAY, Instant, Span
from ropewalk.errors import RopewalkError
from ropewalk.http.identity.identity import Identity
from ropewalk.http.request import Request
from ropewalk.ports.store.capabilities import DOCUMENTS
from ropewalk.ports.store.documents import DocumentPage, DocumentWrite

KIND: Final = "audit"
KEPT_US: Final[Span] = 90 * DAY
BEGUN: Final = "BEGUN"
"""The outcome of an act whose end was not recorded: the server or the store was gone before it."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    at: Instant
    request_id: str
    subject: str
    operation: str
    """The name of the route."""
    target: str
    """The path."""
    tenant: str
    address: str | None
    outcome: str
    """BEGUN, else the HTTP status of the answer."""
    reason: str | None = None
    """The reason that the caller gave."""


class Audit:
    """Appends to the audit and reads it. A store without documents has no audit."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state

    async def begin(self, request: Request, operation: str, identity: Identity, tenant: str, reason: str | None) -> Act:
        """Writes that somebody is about to act. Raises the store's errors: what cannot be recorded is not done."""
        documents = DOCUMENTS.if_declared(self._app_state.store)
        entry = AuditEntry(
            at=await self._app_state.store.clock(),
            request_id=request.id,
            subject=identity.subject,
            operation=operation,
            target=request.path[:500],
            tenant=tenant,
            address=request.peer,
            outcome=BEGUN,
            reason=reason,
        )
        act = Act(self._app_state, self._app_state.runtime.new_id(), entry)
        if documents is not None:
            await documents.write_documents([act.write()])
        return act

    async def page(self, tenant: str | None, subject: str | None, cursor: str | None, limit: int) -> DocumentPage:
        """Entries of a tenant, or of all, newest first."""
        return await DOCUMENTS.of(self._app_state.store).list_documents(
            KIND, tenant=tenant, topic=subject, newest_first=True, cursor=cursor, limit=limit
        )


class Act:
    """An entry whose outcome is not known yet."""

    def __init__(self, app_state: AppState, entry_id: str, entry: AuditEntry) -> None:
        self._app_state = app_state
        self._id = entry_id
        self._entry = entry

    def write(self) -> DocumentWrite:
        return DocumentWrite(
            kind=KIND,
            id=self._id,
            tenant=self._entry.tenant,
            topic=self._entry.subject,
            body=msgspec.json.encode(self._entry),
            expires_in_us=KEPT_US,
        )

    async def end(self, status: int) -> None:
        """Completes the entry. The act is done, so that a store which is away changes nothing about the answer."""
        documents = DOCUMENTS.if_declared(self._app_state.store)
        if documents is None:
            return
        self._entry = structs.replace(self._entry, outcome=str(status))
        try:
            await documents.write_documents([self.write()])
        except RopewalkError as error:
            self._app_state.events.report(error, "audit")
