"""The value of `--arguments`: a JSON object, read by the annotations of a job type as a stored payload is."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from msgspec import Struct

from ropewalk.definitions.job_types.placeholders import job_from_shown
from ropewalk.definitions.registry import Registry


class GivenArguments(Struct, frozen=True):
    text: str

    def of(self, registry: Registry, job_type: str) -> Any:
        """As a call of this type would get them. Raises UnknownJobType, and InvalidInput naming the argument."""
        found = registry.get(job_type)
        arguments = found.arguments_from_json(self.text)
        job_from_shown(found, arguments, ())  # what was copied from where a secret is hidden is refused
        return arguments

    def part_of(self, registry: Registry, job_type: str) -> Any:
        """Only the arguments that are given, to be laid over those of a stored job."""
        return registry.get(job_type).resolve().arguments.part_from_json(self.text.encode())


def given_arguments(text: str | None) -> GivenArguments | None:
    """Raises UsageError if the text is not a JSON object."""
    if text is None:
        return None
    try:
        msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise click.UsageError(f"--arguments {text!r} is not a JSON object like '{{\"a\": 1}}': {error}") from error
    return GivenArguments(text)
