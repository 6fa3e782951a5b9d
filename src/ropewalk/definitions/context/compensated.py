"""What a compensation sees of the job it makes up for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import Origin
from ropewalk.errors import InvalidInput


class Compensated(Struct, frozen=True, kw_only=True):
    """The failed job, as it was when it failed: it may be pruned by now."""

    id: str
    run: int
    type: str
    arguments: Mapping[str, object] | None
    """as the untyped codec reads them, because its type need not be known here; None if another codec wrote them"""
    error: ErrorInfo
    started: bool
    """False when it failed before its first start"""


def compensated(origin: Origin) -> Compensated:
    return Compensated(
        id=origin.id,
        run=origin.run,
        type=origin.type,
        arguments=_arguments(origin.input),
        error=origin.error,
        started=origin.started,
    )


def _arguments(data: bytes) -> Mapping[str, object] | None:
    try:
        decoded = DEFAULT_CODEC.decode(data, Any)
    except InvalidInput:
        return None
    return MappingProxyType(cast("dict[str, object]", decoded)) if isinstance(decoded, dict) else None
