"""`ctx.log`: log lines that say which job they are about, and are kept with it.

A line goes two ways: to the standard logger `ropewalk.job`, as that is configured, and, from the level the app keeps,
to the job's own log. What is secret in its message, its arguments, its fields and its exception is hidden for both, so
that a formatter that knows nothing of secrets shows none.
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

_ExcInfo: TypeAlias = tuple[object, BaseException | None, object]


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """Adds job_id, job_type, job_attempt, … to every record, and `job_context` if the type has a log_context."""

    def __init__(self, port: AttemptPort) -> None:
        super().__init__(logging.getLogger(LOGGER), {})
        self._port = port
        self._fields: dict[str, object] | None = None
        self._secret_keys: frozenset[str] | None = None

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
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
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # this frame is not where it was logged
            super().log(level, msg, *args, **kwargs)

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        if self._fields is None:
            self._fields = _fields(self._port)
        kwargs["extra"] = {**self._fields, **self._extra(kwargs)}
        return msg, kwargs

    def _extra(self, kwargs: Mapping[str, Any]) -> dict[str, object]:
        extra: Mapping[str, object] = kwargs.get("extra") or {}
        return dict(redacted(extra, self._keys()))

    def _shown(self, exc_info: object) -> object:
        """The exception that a line is logged with, or what stands for it where it holds a secret."""
        error = _error_of(exc_info)
        if error is None or (shown := shown_error(error, self._keys())) is error:
            return exc_info
        return (type(shown), shown, cast("_ExcInfo", exc_info)[2]) if isinstance(exc_info, tuple) else shown

    def _keys(self) -> frozenset[str]:
        if self._secret_keys is None:
            self._secret_keys = self._port.job_type.hidden_names(self._port.logs.secret_keys)
        return self._secret_keys

    def _own_fields(self, kwargs: Mapping[str, Any]) -> dict[str, object]:
        """What is kept beside the message: the job itself says the rest."""
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
    """In a field of its own: a record refuses keys such as `name`. A broken function must not break a handler.

    The function never sees an argument or a field that is annotated as a Secret, so it cannot tell it.
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
    """As logging would; a line whose arguments do not fit is kept without them."""
    if not args:
        return str(msg)
    named = len(args) == 1 and isinstance(args[0], Mapping)
    try:
        return guarded(lambda: str(msg) % (args[0] if named else args))
    except Exception:  # an argument's own __str__ may raise anything
        return str(msg)


def _error_of(exc_info: object) -> BaseException | None:
    """What logging takes: an exception, the triple of one, or anything true for the one that is being handled."""
    if not exc_info:
        return None
    if isinstance(exc_info, BaseException):
        return exc_info
    return cast("_ExcInfo", exc_info)[1] if isinstance(exc_info, tuple) else sys.exc_info()[1]
