"""Refuses the text `[hidden]` as the value of a secret, because people copy it from where arguments are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.batch_items import ITEM
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.redaction import HIDDEN, placeholder
from ropewalk.errors import InvalidInput


def job_from_shown(job_type: JobType[..., Any, Any], given: object, secret_keys: Collection[str]) -> Job[Any, Any]:
    """Build a job from arguments by name. Raises InvalidInput if `[hidden]` is given in place of a secret.

    The arguments are searched as they are given and as the handler would get them, because a field may be given by the
    name under which it is stored and be marked as Secret under its name in the code.
    """
    secrets = job_type.resolve().arguments.secrets.union(secret_keys)
    _refuse(job_type, _by_name(given) if job_type.options.batch is None else {ITEM: given}, secrets)
    job = job_type.from_arguments(given)
    try:
        decoded = job_type.decode_input(job.input)
    except InvalidInput:  # whether arguments fit is decided by the worker that runs the job
        return job
    _refuse(job_type, decoded, secrets)
    return job


def _by_name(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}


def _refuse(job_type: JobType[..., Any, Any], arguments: Mapping[str, object], secrets: Collection[str]) -> None:
    path = placeholder(arguments, secrets)
    if path is None:
        return
    name, *inside = path
    where = f" at {'.'.join(path)}" if inside else ""
    optional = name not in job_type.resolve().arguments.required
    raise InvalidInput(
        f"{job_type.name}: argument {name!r} holds {HIDDEN!r}{where}, which stands for a secret "
        f"and is not its value: "
        f"give the value itself{', or leave it out, which means its default' if optional else ''}",
        field=name,
    )
