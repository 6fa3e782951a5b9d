"""The ASGI application: each request goes through the same steps to a route, and each failure to the same shape."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from ropewalk.app import App
from ropewalk.domain.bounds import check_name
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.errors import RopewalkError
from ropewalk.http.answer import Reply, Stream, send_reply, send_stream
from ropewalk.http.call import Call
from ropewalk.http.decoding import check_headers, from_query, read_body
from ropewalk.http.errors import ErrorCode, HttpError, http_error, invalid
from ropewalk.http.hosts import Hosts
from ropewalk.http.identity.authentication import StoredIdentities
from ropewalk.http.identity.identity import EVERY_TENANT, Authenticate, Identity, Payloads, Role
from ropewalk.http.identity.origin import check_origin
from ropewalk.http.request import Disconnected, Message, Receive, Request, Scope, Send
from ropewalk.http.routes import ALL_ROUTES
from ropewalk.http.routing import Access, Route, Router
from ropewalk.http.service import Service

_LOG: Final = logging.getLogger("ropewalk.http")
_ACCESS: Final = logging.getLogger("ropewalk.http.access")
_ROUTER: Final = Router(ALL_ROUTES)
_NOBODY: Final = Identity(subject="", tenant=DEFAULT_TENANT, roles=frozenset[Role](), payloads=Payloads.NONE)
"""Who calls a public route."""


class Serve:
    """`Serve(app)` is an ASGI application, to be run by a server or mounted into another one.

    authenticate: finds out who sends a request; by default the tokens and sessions in the store do. Nothing but health,
        documentation and the login is open to nobody.
    hosts: the names that requests may use for this server, beside addresses and localhost. None, for an application
        that is mounted into another one, allows every name.
    """

    def __init__(
        self, app: App, *, authenticate: Authenticate | None = None, hosts: Iterable[str] | None = None
    ) -> None:
        service = Service(app)
        self._hosts = None if hosts is None else Hosts(hosts)
        self.service: Final = service
        if authenticate is None:
            authenticate = StoredIdentities(service.tokens, service.sessions, service.guesses)
        service.authenticate = authenticate
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    def drain(self) -> None:
        """Ends waits and streams, and makes the server report that it is not ready. To be called before it stops."""
        self.service.draining.set()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """A store that is away does not stop the server from starting: it answers 503 until the store is back."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                with suppress(RopewalkError):
                    await self.service.open()
                await send({"type": "lifespan.startup.complete"})
            else:
                self.drain()
                self.service.close()
                await self.service.app.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, self.service.runtime.token())
        began, status = self.service.runtime.monotonic(), 0

        async def sending(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            reply = await self._reply(request)
            if isinstance(reply, Stream):
                await self._stream(request, reply, sending)
            else:
                await send_reply(sending, reply, _headers(request), head=request.method == "HEAD")
        except Disconnected:
            return
        except Exception as error:
            if status:
                raise
            refusal = self._refusal(error, request)
            headers = {**_headers(request), **refusal.headers}
            if refusal.code is ErrorCode.PAYLOAD_TOO_LARGE:
                headers["Connection"] = "close"  # the rest of the body is not read
            to_client = _then_discard(request, sending) if "Connection" in headers else sending
            reply = Reply(refusal.body(request.id), refusal.code.status)
            await send_reply(to_client, reply, headers, head=request.method == "HEAD")
        finally:
            self._log_access(request, status, self.service.runtime.monotonic() - began)

    def _log_access(self, request: Request, status: int, seconds: float) -> None:
        """One line per request. The query is left out, because a filter may quote users' data."""
        if not _ACCESS.isEnabledFor(logging.INFO):
            return
        fields = {
            "request_id": request.id,
            "method": request.method,
            "path": request.path[:500],
            "status": status,
            "duration_ms": round(seconds * 1000, 1),
            "address": request.peer,
        }
        _ACCESS.info("%s %s %d", request.method, request.path[:500], status, extra=fields)

    async def _reply(self, request: Request) -> object:
        """Every request goes through these steps, in this order."""
        if self._hosts is not None:
            self._hosts.check(request)
        route, params = _ROUTER.find(request.method, request.path, request.segments)
        identity = await self._identity(request, route)
        check_origin(request)
        headers = self.service.rates.take(identity)
        tenant = _tenant(request, identity)
        check_headers(request, route.headers)
        query = from_query(request.query, route.query)
        body = None if route.body is None else await read_body(request, route.body)
        call = Call(request, self.service, identity, tenant, params, body, query)
        answer = await (self._audited(route, call) if route.audited else route.handle(call))
        return _with_headers(answer, headers) if headers else answer

    async def _audited(self, route: Route, call: Call[Any, Any]) -> object:
        """Calls a route whose calls the audit keeps: what is refused, too."""
        reason = getattr(call.body, "reason", None)
        act = await self.service.audit.begin(call.request, route.name, call.identity, call.tenant, reason)
        try:
            answer: object = await route.handle(call)
        except Exception as error:
            await act.end(self._refusal(error, call.request).code.status)
            raise
        reply = cast("Reply[object]", answer) if isinstance(answer, Reply) else Reply(answer, route.statuses[0])
        await act.end(reply.status)
        return reply

    async def _identity(self, request: Request, route: Route) -> Identity:
        """Who may call this route. Raises HttpError for everybody else."""
        if route.needs is Access.PUBLIC:
            return _NOBODY
        identity = await self._authenticate(request)
        if identity is None:
            headers = {"WWW-Authenticate": "Bearer"}
            raise HttpError(ErrorCode.UNAUTHORIZED, "no valid token or session was sent", headers=headers)
        if isinstance(route.needs, Role) and route.needs not in identity.roles:
            told = f"this needs the role {route.needs.value!r}, which this identity does not have"
            raise HttpError(ErrorCode.FORBIDDEN, told)
        if route.every_tenant and identity.tenant != EVERY_TENANT:
            raise HttpError(ErrorCode.FORBIDDEN, "this needs an identity for every tenant")
        return identity

    async def _stream(self, request: Request, stream: Stream, send: Send) -> None:
        """Sends until the stream ends, the client goes, or it falls too far behind."""
        sending = asyncio.ensure_future(send_stream(send, stream, _headers(request)))
        ends: list[asyncio.Future[Any]] = [sending, asyncio.ensure_future(request.disconnected())]
        if stream.cut_off is not None:
            ends.append(asyncio.ensure_future(stream.cut_off.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            await stream.chunks.aclose()

    def _refusal(self, error: Exception, request: Request) -> HttpError:
        if isinstance(error, HttpError):
            return error
        refusal = http_error(error) if isinstance(error, RopewalkError) else http_error(RopewalkError())
        if refusal.code is ErrorCode.INTERNAL_ERROR:
            _LOG.error("request %s: %s %s failed", request.id, request.method, request.path[:200], exc_info=error)
        return refusal


def _then_discard(request: Request, send: Send) -> Send:
    """Sends an answer, and ends it only when what still comes of the request was read: the connection closes then."""

    async def sending(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({**message, "more_body": True})
        await request.discard()
        await send({"type": "http.response.body", "body": b""})

    return sending


def _with_headers(answer: object, headers: Mapping[str, str]) -> object:
    """The answer of a route with more headers. A stream keeps those that it has."""
    if isinstance(answer, Stream):
        return answer
    if isinstance(answer, Reply):
        reply = cast("Reply[object]", answer)
        return Reply(reply.value, reply.status, {**reply.headers, **headers})
    return Reply(answer, headers=headers)


def _headers(request: Request) -> dict[str, str]:
    return {"X-Request-ID": request.id}


def _tenant(request: Request, identity: Identity) -> str:
    """The tenant that a call is about. An identity for every tenant names one in a header."""
    named = request.headers.get("ropewalk-tenant")
    if identity.tenant != EVERY_TENANT:
        if named is not None and named != identity.tenant:
            raise HttpError(ErrorCode.FORBIDDEN, "this identity is bound to its own tenant: leave Ropewalk-Tenant out")
        return identity.tenant
    if named is None:
        return DEFAULT_TENANT
    try:
        tenant = check_name(named.encode("latin-1").decode(), "Ropewalk-Tenant")
    except UnicodeDecodeError as error:
        raise invalid("the header Ropewalk-Tenant is not UTF-8", field="Ropewalk-Tenant") from error
    if tenant == EVERY_TENANT:
        raise invalid("the header Ropewalk-Tenant names one tenant, not '*'", field="Ropewalk-Tenant")
    return tenant
