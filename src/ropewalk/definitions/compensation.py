"""`on_failure=`: from a job type, or a job as template, to the follow-up that is stored with a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ropewalk.definitions.job import NO_OPTIONS, Job
from ropewalk.definitions.job_types.arguments import Arguments
from ropewalk.definitions.job_types.batch_items import Item
from ropewalk.definitions.option_precedence import base_of, limit_key_of, options_of
from ropewalk.definitions.options import AppDefaults
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.errors import InvalidInput

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType

    AnyType: TypeAlias = JobType[..., Any, Any]

CARRIED: Final = frozenset(
    {"queue", "priority", "max_attempts", "max_crashes", "timeout", "backoff", "on_failure", "limit"}
)
"""what a stored follow-up can say about itself; tenant, workflow and correlation id come from the failed job"""


def follow_up(failed: AnyType, wanted: AnyType | Job[Any, Any], defaults: AppDefaults) -> CompensationSpec:
    """A job type takes over the failed job's arguments it names; a job brings its own input. Both get a fresh id."""
    if isinstance(wanted, Job):
        return _from_template(wanted, defaults)
    takes = wanted.resolve().arguments
    if (reason := why_not(failed.resolve().arguments, takes)) is not None:
        raise InvalidInput(f"on_failure={wanted.name}: {reason}", field="on_failure")
    base, own = base_of(wanted.options, defaults), wanted.options.on_failure
    return CompensationSpec(
        type=wanted.name,
        accepts=None if isinstance(takes, Item) else takes.names,
        defaults=_defaults_taken_over(failed.resolve().arguments, takes),
        queue=base.queue,
        priority=base.priority or 0,
        max_attempts=base.max_attempts,
        max_crashes=base.max_crashes,
        limit_key=base.limit_key,
        on_failure=None if own is None else follow_up(wanted, own, defaults),
    )


def _defaults_taken_over(failed: Arguments | Item, wanted: Arguments | Item) -> bytes | None:
    """Defaults of the failed type for what the compensation takes over. Its own may be others."""
    if isinstance(failed, Item) or isinstance(wanted, Item):
        return None
    found = failed.encoded_defaults(wanted.names)
    return msgspec.json.encode(found) if found else None


def why_not(failed: Arguments | Item, wanted: Arguments | Item) -> str | None:
    """Why `wanted` cannot take over the arguments of `failed`, or None."""
    if isinstance(failed, Item) != isinstance(wanted, Item):
        return "one of them takes an item, the other arguments by name; give a job with its own arguments"
    lacking = wanted.required.difference(failed.names)
    if lacking:
        return (
            f"it requires {', '.join(sorted(lacking))}, which {failed.job_type} does not take; "
            "give the parameter a default, or give a job with its own arguments"
        )
    if not (failed.plain_json and wanted.plain_json):
        return "arguments are taken over one by one only as plain JSON, not with a codec; give a job instead"
    return None


def _from_template(template: Job[Any, Any], defaults: AppDefaults) -> CompensationSpec:
    """What the type computes beside the carried options is for jobs in a queue, and does not concern a follow-up."""
    for name in template.options:
        if name not in CARRIED:
            raise InvalidInput(
                f"on_failure={template.type.name}: a compensation cannot have {name}=; it starts when the job failed, "
                f"under its tenant and workflow. Possible: {', '.join(sorted(CARRIED))}",
                field="on_failure",
            )
    given, base = options_of(template, NO_OPTIONS), base_of(template.type.options, defaults)
    own = given.get("on_failure", template.type.options.on_failure)
    return CompensationSpec(
        type=template.type.name,
        input=template.input,
        queue=given.get("queue", base.queue),
        priority=given.get("priority", base.priority or 0),
        max_attempts=given.get("max_attempts", base.max_attempts),
        max_crashes=given.get("max_crashes", base.max_crashes),
        timeout_us=given.get("timeout"),
        backoff=given.get("backoff"),
        limit_key=limit_key_of(template, given),
        on_failure=None if own is None else follow_up(template.type, own, defaults),
    )
