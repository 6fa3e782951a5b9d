"""The stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from ropewalk.http.answer import Stream
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode, HttpError, invalid
from ropewalk.http.events.shapes import NAMED_MAX, EventQuery
from ropewalk.http.events.stream import EventStream
from ropewalk.http.events.watching import Kind, Watched
from ropewalk.http.identity.identity import EVERY_TENANT, Role
from ropewalk.http.routing import Routes

routes = Routes("events")


@routes.get("/events", role=Role.READ, media_type="text/event-stream")
async def stream_events(call: Call[None, EventQuery]) -> Stream:
    """Stream events as they happen, as server-sent events.

    Jobs, groups and workflows that are named are watched wherever they run: their state is told at once, and every
    change of it. Without names the stream has what this server did or heard of, never a complete log. Last-Event-ID
    continues a stream without names, or is answered with the event `resync` if this server cannot.
    """
    _check(call)
    stream = EventStream(call, lambda: call.service.is_valid(call.request, call.identity))
    ended = _watch(call, stream) if call.query.named else _read_feed(call, stream)
    return Stream(_until_closed(stream, ended), "text/event-stream", stream.too_far_behind)


def _check(call: Call[None, EventQuery]) -> None:
    if call.query.named > NAMED_MAX:
        raise invalid(f"{call.query.named} jobs, groups and workflows are named: at most {NAMED_MAX}", field="job_id")
    if call.query.every_tenant and (call.identity.tenant != EVERY_TENANT or Role.ADMIN not in call.identity.roles):
        raise HttpError(ErrorCode.FORBIDDEN, "every_tenant=true needs the role 'admin' for every tenant")


def _watch(call: Call[None, EventQuery], stream: EventStream) -> Callable[[], None]:
    names: list[tuple[Kind, list[str]]] = [
        ("job", call.query.job_id),
        ("group", call.query.group_id),
        ("workflow", call.query.workflow_id),
    ]
    named: list[Watched] = [(call.tenant, kind, each) for kind, ids in names for each in ids]
    return call.service.watcher.watch(named, stream.put)


def _read_feed(call: Call[None, EventQuery], stream: EventStream) -> Callable[[], None]:
    feed = call.service.feed
    last_id = call.request.headers.get("last-event-id")
    missed = [] if last_id is None else feed.since(last_id)
    if missed is None:
        stream.send("resync", {})
    for number, event in missed or ():
        stream.put(event, f"{feed.server_id}-{number}")
    return feed.attach(lambda number, event: stream.put(event, f"{feed.server_id}-{number}"))


async def _until_closed(stream: EventStream, ended: Callable[[], None]) -> AsyncGenerator[bytes]:
    try:
        async for chunk in stream.chunks():
            yield chunk
    finally:
        ended()
