"""Looking at job types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.identity.identity import Role
from ropewalk.http.routing import Routes

routes = Routes("types")


class TypeInfo(Struct, frozen=True, kw_only=True):
    """A job type that the app of this server registers."""

    type: str
    queue: str | None
    """The queue of its jobs, unless they name another one. None for that of the app."""
    max_attempts: int | None
    description: str
    arguments: Sequence[str]
    required: Sequence[str]


class Types(Struct, frozen=True, kw_only=True):
    types: Sequence[TypeInfo]


@routes.get("/types", role=Role.READ)
async def list_types(call: Call[None, NoQuery]) -> Types:
    """List the job types, by name."""
    reached = call.identity.types
    found = sorted(call.service.registry, key=lambda each: each.name)
    return Types(types=[_shown(each) for each in found if reached is None or each.name in reached])


def _shown(job_type: JobType[..., Any, Any]) -> TypeInfo:
    takes = job_type.resolve().arguments
    options = job_type.options
    return TypeInfo(
        type=job_type.name,
        queue=options.queue,
        max_attempts=options.max_attempts if isinstance(options.max_attempts, int) else None,
        description=(job_type.handler.__doc__ or "").strip().split("\n\n")[0],
        arguments=sorted(takes.names),
        required=sorted(takes.required),
    )
