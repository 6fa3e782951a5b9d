"""The value of `--arguments`: a JSON object, read by the annotations of a job type as a stored payload is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import click
import msgspec
from msgspec import Struct

from ropewalk.definitions.registry import Registry
from ropewalk.domain.redaction import HIDDEN


class GivenArguments(Struct, frozen=True):
    text: str

    def of(self, registry: Registry, job_type: str) -> Any:
        """As a call of this type would get them. Raises UnknownJobType, and InvalidInput naming the argument."""
        return registry.get(job_type).arguments_from_json(self.text)


def given_arguments(text: str | None) -> GivenArguments | None:
    """Raises UsageError for what is no JSON object."""
    if text is None:
        return None
    try:
        given = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise click.UsageError(f"--arguments {text!r} is no JSON object like '{{\"a\": 1}}': {error}") from error
    for name, value in given.items():
        if _holds_hidden(value):
            raise click.UsageError(
                f"--arguments: argument {name!r} holds {HIDDEN!r}, which stands for a secret where jobs are shown: "
                "give the secret itself"
            )
    return GivenArguments(text)


def _holds_hidden(value: object) -> bool:
    match value:
        case dict():
            return any(map(_holds_hidden, cast("dict[str, object]", value).values()))
        case list():
            return any(map(_holds_hidden, cast("Iterable[object]", value)))
        case _:
            return value == HIDDEN
