"""`ctx.log`: log lines that name the job they are about, and that are kept with the job.

A line goes to the standard logger `ropewalk.job`, as that is configured, and, if the app keeps lines of its level, to
the job's own log. Secrets in its message, arguments, fields and exception are hidden before, so that even a formatter
that knows nothing of secrets shows none.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TypeAlias, cast

from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.domain.ids import trace_ids
from ropewalk.domain.logs import fields_json, text
from ropewalk.domain.redaction import concealed, redacted
from ropewalk.domain.shown_errors import safe_error_text, shown_error
from ropewalk.domain.user_calls import guarded

LOGGER: Final = "ropewalk.job"
"""The name of the standard logger that gets the lines."""

_ExcInfo: TypeAlias = tuple[object, BaseException | None, object]


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds job_id, job_type, job_attempt, ... to every record, and job_context with a log_context."""

    def __init__(self, port: AttemptPort) -> None:
        super().__init__(logging.getLogger(LOGGER), {})
        self._port = port
        self._fields: dict[str, object] | None = None
        self._secret_keys: frozenset[str] | None = None

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line and keep it with the job, each if its level is high enough."""
        if not (self._port.logs.keeps(level) or self.logger.isEnabledFor(level)):
            return
        if args:
            args = tuple(redacted(each, self._keys()) for each in args)
        if not isinstance(msg, str):
            msg = redacted(msg, self._keys())
        if kwargs.get("exc_info"):
            kwargs["exc_info"] = self._shown(kwargs["exc_info"])
        if self._port.logs.keeps(level):
            self._port.keep_log_line(level, text(_formatted(msg, args)), fields_json(self._own_fields(kwargs)))
        if self.logger.isEnabledFor(level):
            kwargs["stacklevel"] = (
                kwargs.get("stacklevel", 1) + 1
            )  # skips this frame, so that the record names the caller
            super().log(level, msg, *args, **kwargs)

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        """Add the fields of the job to those of the line; the standard library calls this."""
        if self._fields is None:
            self._fields = _fields(self._port)
        kwargs["extra"] = {**self._fields, **self._extra(kwargs)}
        return msg, kwargs

    def _extra(self, kwargs: Mapping[str, Any]) -> dict[str, object]:
        extra: Mapping[str, object] = kwargs.get("extra") or {}
        return dict(redacted(extra, self._keys()))

    def _shown(self, exc_info: object) -> object:
        """The `exc_info` of a line; if its exception contains a secret, an exception without it takes its place."""
        error = _error_of(exc_info)
        if error is None or (shown := shown_error(error, self._keys())) is error:
            return exc_info
        return (type(shown), shown, cast("_ExcInfo", exc_info)[2]) if isinstance(exc_info, tuple) else shown

    def _keys(self) -> frozenset[str]:
        if self._secret_keys is None:
            self._secret_keys = self._port.job_type.hidden_names(self._port.logs.secret_keys)
        return self._secret_keys

    def _own_fields(self, kwargs: Mapping[str, Any]) -> dict[str, object]:
        """The fields that are kept with the message, without those that the job itself has."""
        fields = self._extra(kwargs)
        if self._port.job_type.options.log_context is not None:
            fields["context"] = _context(self._port)
        error = _error_of(kwargs.get("exc_info"))
        if error is not None:  # in one line: the traceback goes to the logger
            fields["error"] = text(f"{type(error).__name__}: {safe_error_text(error, self._keys())}")
        return fields


def _fields(port: AttemptPort) -> dict[str, object]:
    job = port.job
    ids = trace_ids(job.trace)
    fields: dict[str, object] = {
        "job_id": job.id,
        "job_type": job.type,
        "job_attempt": job.attempt,
        "job_queue": job.queue,
        "job_tenant": job.tenant,
        "job_correlation_id": job.correlation_id,
        "job_workflow_id": job.workflow_id,
        "job_trace_id": None if ids is None else ids[0],
        "job_span_id": None if ids is None else ids[1],
    }
    if port.job_type.options.log_context is not None:
        fields["job_context"] = _context(port)
    return fields


def _context(port: AttemptPort) -> Mapping[str, object]:
    """What the type's log_context returns. An error of this function becomes a field, and does not fail the handler.

    It is a field of its own, because a log record refuses keys such as `name`. The function gets no argument and no
    field that is annotated as Secret.
    """
    derive = port.job_type.options.log_context
    assert derive is not None
    keys = port.job_type.hidden_names(port.logs.secret_keys)
    try:
        arguments = port.job_type.decode_input(port.job.input)
        shown = concealed(arguments, port.job_type.resolve().secrets)
        return dict(redacted(guarded(derive, shown), keys))
    except Exception as error:  # the user's function may raise anything
        return {"log_context_failed": f"{type(error).__name__}: {safe_error_text(error, keys)}"}


def _formatted(msg: object, args: tuple[object, ...]) -> str:
    """The message with its arguments, as logging formats it; without them if they do not fit."""
    if not args:
        return str(msg)
    named = len(args) == 1 and isinstance(args[0], Mapping)
    try:
        return guarded(lambda: str(msg) % (args[0] if named else args))
    except Exception:  # an argument's own __str__ may raise anything
        return str(msg)


def _error_of(exc_info: object) -> BaseException | None:
    """The exception in `exc_info`, which is an exception, a triple, or a true value for the exception being handled."""
    if not exc_info:
        return None
    if isinstance(exc_info, BaseException):
        return exc_info
    return cast("_ExcInfo", exc_info)[1] if isinstance(exc_info, tuple) else sys.exc_info()[1]
