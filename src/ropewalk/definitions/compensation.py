"""Turns what `on_failure=` names, a job type or a job, into the compensation that is stored with a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ropewalk.definitions.job import NO_OPTIONS, Job
from ropewalk.definitions.job_types.arguments import Arguments
from ropewalk.definitions.job_types.batch_items import Item
from ropewalk.definitions.option_precedence import base_options_of, limit_key_of, options_of
from ropewalk.definitions.options import AppDefaults
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.errors import InvalidInput

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType

    AnyType: TypeAlias = JobType[..., Any, Any]

TEMPLATE_OPTIONS: Final = frozenset(
    {"queue", "priority", "max_attempts", "max_crashes", "timeout", "backoff", "on_failure", "limit"}
)
"""Options that a job as compensation can have; its tenant, workflow and correlation id are those of the failed job."""


def compensation_of(failed: AnyType, wanted: AnyType | Job[Any, Any], defaults: AppDefaults) -> CompensationSpec:
    """The compensation of a failed job, which gets a new id when it is submitted.

    A job type takes over those arguments of the failed job that it names, too; a job has its own input.
    """
    if isinstance(wanted, Job):
        return _from_template(wanted, defaults)
    takes = wanted.resolve().arguments
    if (reason := takeover_problem(failed.resolve().arguments, takes)) is not None:
        raise InvalidInput(f"on_failure={wanted.name}: {reason}", field="on_failure")
    base, own = base_options_of(wanted.options, defaults), wanted.options.on_failure
    return CompensationSpec(
        type=wanted.name,
        accepts=None if isinstance(takes, Item) else takes.names,
        defaults=_defaults_taken_over(failed.resolve().arguments, takes),
        queue=base.queue,
        priority=base.priority or 0,
        max_attempts=base.max_attempts,
        max_crashes=base.max_crashes,
        limit_key=base.limit_key,
        on_failure=None if own is None else compensation_of(wanted, own, defaults),
    )


def _defaults_taken_over(failed: Arguments | Item, wanted: Arguments | Item) -> bytes | None:
    """The failed type's defaults of the arguments that are taken over; the compensation may have other defaults."""
    if isinstance(failed, Item) or isinstance(wanted, Item):
        return None
    found = failed.encoded_defaults(wanted.names)
    return msgspec.json.encode(found) if found else None


def takeover_problem(failed: Arguments | Item, wanted: Arguments | Item) -> str | None:
    """Why `wanted` cannot take over the arguments of `failed`; None if it can."""
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
    """The compensation that a job describes.

    Options that its type computes and that a compensation cannot have are ignored; it is an error if the job has them.
    """
    for name in template.options:
        if name not in TEMPLATE_OPTIONS:
            raise InvalidInput(
                f"on_failure={template.type.name}: a compensation cannot have {name}=; it starts when the job failed, "
                f"under its tenant and workflow. Possible: {', '.join(sorted(TEMPLATE_OPTIONS))}",
                field="on_failure",
            )
    given, base = options_of(template, NO_OPTIONS), base_options_of(template.type.options, defaults)
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
        on_failure=None if own is None else compensation_of(template.type, own, defaults),
    )
