"""The value of the option `--arguments`: a JSON object, decoded by the annotations of a job type."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from msgspec import Struct

from ropewalk.definitions.job_types.placeholders import job_from_shown
from ropewalk.definitions.registry import Registry


class JsonArguments(Struct, frozen=True):
    """The text of `--arguments`, which can be decoded as soon as the job type is known."""

    text: str

    def of(self, registry: Registry, job_type: str) -> Any:
        """Return the arguments for a job of this type; raise UnknownJobType, or InvalidInput naming the argument."""
        found = registry.get(job_type)
        arguments = found.arguments_from_json(self.text)
        job_from_shown(found, arguments, ())  # refuses text that was copied from output in which secrets are hidden
        return arguments

    def part_of(self, registry: Registry, job_type: str) -> Any:
        """Return only the arguments that the text contains; those of a stored job replace the others."""
        return registry.get(job_type).resolve().arguments.part_from_json(self.text.encode())


def json_arguments(text: str | None) -> JsonArguments | None:
    """Return the value of `--arguments`, or None without the option; raise UsageError if it is no JSON object."""
    if text is None:
        return None
    try:
        msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise click.UsageError(f"--arguments {text!r} is not a JSON object like '{{\"a\": 1}}': {error}") from error
    return JsonArguments(text)
