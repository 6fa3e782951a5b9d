"""Looking at queues, pausing and resuming them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import not_found
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.lookup import refuse_bounded
from ropewalk.http.routing import Routes
from ropewalk.http.wire import JobState, timestamp_or_none
from ropewalk.ports.store.reading import QueueInfo

routes = Routes("queues")


class QueueStatus(Struct, frozen=True, kw_only=True):
    """A queue with the jobs in it that have not ended."""

    name: str
    paused: bool
    counts: Mapping[JobState, int]
    """By state; states without jobs are absent."""
    oldest_ready_at: datetime | None


class Queues(Struct, frozen=True, kw_only=True):
    queues: Sequence[QueueStatus]


class QueueChange(Struct, frozen=True, kw_only=True):
    name: str
    paused: bool


@routes.get("/queues", role=Role.READ)
async def list_queues(call: Call[None, NoQuery]) -> Queues:
    """List the queues that have jobs which have not ended, or that are paused."""
    refuse_types(call)
    return Queues(queues=[_status(each) for each in await call.client.queues() if _reached(call, each.name)])


@routes.post("/queues/{name}/pause", role=Role.OPERATE)
async def pause_queue(call: Call[None, NoQuery]) -> QueueChange:
    """Let no more jobs of this queue start. Running jobs go on."""
    name = _checked(call)
    await call.client.pause(name)
    return QueueChange(name=name, paused=True)


@routes.post("/queues/{name}/resume", role=Role.OPERATE)
async def resume_queue(call: Call[None, NoQuery]) -> QueueChange:
    """Let the jobs of this queue start again."""
    name = _checked(call)
    await call.client.resume(name)
    return QueueChange(name=name, paused=False)


def refuse_types(call: Call[Any, Any]) -> None:
    """Raises HttpError for an identity that reaches only some types: a queue holds jobs of any type."""
    if call.identity.types is not None:
        refuse_bounded(call)


def _checked(call: Call[Any, Any]) -> str:
    """The queue of the path. Raises HttpError if the identity does not reach all of it."""
    refuse_types(call)
    name = call.params["name"]
    if not _reached(call, name):
        raise not_found()
    return name


def _reached(call: Call[Any, Any], name: str) -> bool:
    return call.identity.queues is None or name in call.identity.queues


def _status(info: QueueInfo) -> QueueStatus:
    return QueueStatus(
        name=info.name,
        paused=info.paused,
        counts={JobState.of(state): count for state, count in info.counts.items() if count},
        oldest_ready_at=timestamp_or_none(info.oldest_ready_at),
    )
