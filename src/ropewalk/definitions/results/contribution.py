"""How a job's own value joins the value of its group."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from ropewalk.definitions.results.result import Said
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.errors import InvalidInput


def contribution_of(said: Said, job_type: str, data: bytes | None) -> Contribution:
    """`data` is the encoded value. Raises InvalidInput for a value that cannot be folded as asked."""
    match said.append:
        case None:
            return Contribution(type=job_type, value=data, reducer="final" if said.final else "last")
        case "list":
            return Contribution(type=job_type, value=data, reducer="list")
        case "count":
            return Contribution(type=job_type, value=None, reducer="count")
        case "merge":
            if not isinstance(said.value, Mapping):
                raise _wrong(said, "a mapping")
            return Contribution(type=job_type, value=data, reducer="merge")
        case "sum" | "min" | "max" as append:
            # Folded where it is kept, as a plain number: whatever codec the type has.
            return Contribution(type=job_type, value=msgspec.json.encode(_number(said)), reducer=append)
        case _:
            return Contribution(type=job_type, value=data, reducer="custom")


def _number(said: Said) -> int | float:
    value = said.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
        raise _wrong(said, "a finite int or float")
    return int(value) if isinstance(value, int) else float(value)


def _wrong(said: Said, wanted: str) -> InvalidInput:
    return InvalidInput(f"ctx.result({said.value!r}, append={said.append!r}) takes {wanted}", field="result")
