"""A kept log line, as people see it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfo:
    at: datetime
    level: str
    """DEBUG, INFO, WARNING, ERROR, CRITICAL, or the number of another one"""
    message: str
    fields: Mapping[str, object]
    attempt: int

    @classmethod
    def of(cls, line: LogLine) -> LogInfo:
        fields = {} if line.fields is None else msgspec.json.decode(line.fields, type=dict[str, object])
        names = {number: name for name, number in logging.getLevelNamesMapping().items() if name not in _SYNONYMS}
        return cls(
            at=to_datetime(line.at),
            level=names.get(line.level, str(line.level)),
            message=line.message,
            fields=fields,
            attempt=line.attempt,
        )


_SYNONYMS = frozenset({"WARN", "FATAL", "NOTSET"})
