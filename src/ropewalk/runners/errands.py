"""A job that a handler in another process wants to spawn, on its way to the worker, which builds it again there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from ropewalk.definitions.job import Job
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain.retry import Backoff
from ropewalk.runners.source import Source, find, source_of


class Errand(Struct, frozen=True, tag=True, kw_only=True):
    source: Source
    id: str
    input: bytes
    options: dict[str, Any]
    """those that MessagePack knows"""
    backoff: Backoff | None = None
    on_failure: Source | Errand | None = None


def errand(job: Job[Any, Any]) -> Errand:
    """Raises DefinitionError for a type that the worker could not find."""
    apart = {"backoff"} if job.options.get("on_failure") is None else {"backoff", "on_failure"}
    return Errand(
        source=source_of(job.type),
        id=job.id,
        input=job.input,
        options={name: _plain(value) for name, value in job.options.items() if name not in apart},
        backoff=job.options.get("backoff"),
        on_failure=_follow_up(job.options.get("on_failure")),
    )


def job_of(sent: Errand) -> Job[Any, Any]:
    """The job itself, of the worker's own type. Raises DefinitionError where the worker has not imported that."""
    job_type = find(sent.source)
    options = dict(sent.options)
    if sent.backoff is not None:
        options["backoff"] = sent.backoff
    match sent.on_failure:
        case Source():
            options["on_failure"] = find(sent.on_failure)
        case Errand():
            options["on_failure"] = job_of(sent.on_failure)
        case None:
            pass
    arguments = MappingProxyType(job_type.decode_input(sent.input))
    return Job(sent.id, job_type, sent.input, arguments, cast("EnqueueOptions", MappingProxyType(options)))


def _follow_up(wanted: JobType[..., Any, Any] | Job[Any, Any] | None) -> Source | Errand | None:
    if wanted is None:
        return None
    return source_of(wanted) if isinstance(wanted, JobType) else errand(wanted)


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return dict(cast("Mapping[object, object]", value))
        case _:
            return value
