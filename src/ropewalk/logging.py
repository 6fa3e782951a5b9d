"""Formats log records as JSON, or as lines for people that name the job they are about, and hides secrets in them.

Write `handler.setFormatter(JsonFormatter())`. It works with the `logging` of the standard library.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from copy import copy
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from ropewalk.domain import checks
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.redaction import redacted
from ropewalk.domain.shown_errors import traceback_text

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that every log record has."""

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _Formatter(logging.Formatter):
    """Hides secrets in messages, in their arguments and fields, and in exceptions."""

    _secret_keys: frozenset[str] = frozenset()

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 # the standard library's name
        error = ei[1]
        if error is None:
            return super().formatException(ei)
        return traceback_text(error, self._secret_keys).removesuffix("\n")

    def _shown(self, record: logging.LogRecord) -> logging.LogRecord:
        """A copy of the record without secrets; other handlers get the record as it is.

        A traceback that another formatter has stored in the record is made again, because it may contain secrets.
        """
        keys, shown = self._secret_keys, copy(record)
        vars(shown).update(redacted(_fields(record), keys))
        args = redacted(record.args, keys) if record.args else record.args
        shown.args = tuple(cast("list[object]", args)) if isinstance(args, list) else args
        shown.msg = record.msg if isinstance(record.msg, str) else redacted(record.msg, keys)
        if record.exc_info:
            shown.exc_text = None
        return shown


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields that the logging call added to the record."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and value is not None}


class JsonFormatter(_Formatter):
    """Formats each record as one JSON object: time, level, logger, message, and every extra field that has a value.

    It can be used with any logger, not only ropewalk's. Records of `ctx.log` have fields such as job_id and job_type.
    """

    def __init__(self, *, secret_keys: Collection[str] = ()) -> None:
        super().__init__()
        self._secret_keys = frozenset(checks.names(secret_keys, "secret_keys"))

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        record = self._shown(record)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.processName not in (None, "MainProcess"):
            line["process"] = record.processName
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:  # a traceback that is only text, such as that of a failed attempt
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        return _encoded(line)


class TextFormatter(_Formatter):
    """Formats each record as a line for people, which ends with the job that the record is about.

    It takes the arguments of `logging.Formatter`, and the names of fields to hide beside those that are always hidden.
    """

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Literal["%", "{", "$"] = "%",
        validate: bool = True,  # noqa: FBT001, FBT002 # as in the standard library
        *,
        defaults: Mapping[str, Any] | None = None,
        secret_keys: Collection[str] = (),
    ) -> None:
        super().__init__(fmt, datefmt, style, validate, defaults=defaults)
        self._secret_keys = frozenset(checks.names(secret_keys, "secret_keys"))

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of text, with its traceback."""
        return super().format(self._shown(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 # the standard library's name
        """The line without its traceback; the standard library calls this."""
        line = super().formatMessage(record)
        fields = vars(record)
        if "job_event" in fields or "job_id" not in fields:  # the message of a job event names the job
            return line
        named = {"type": fields.get("job_type"), "job": fields["job_id"], "attempt": fields.get("job_attempt")}
        if (tenant := fields.get("job_tenant")) != DEFAULT_TENANT:
            named["tenant"] = tenant
        about = " ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        return f"{line}  [{about}]"


def _encoded(line: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError):  # a key that is no string, text that is no text, a circle
        return msgspec.json.encode({name: ascii(value) for name, value in line.items()}).decode()
