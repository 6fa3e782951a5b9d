"""`ctx.log`: log lines that say which job they are about."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from ropewalk.definitions.attempt_port import AttemptPort

LOGGER: Final = "ropewalk.job"


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """Adds job_id, job_type, job_attempt, … to every record, and `job_context` if the type has a log_context."""

    def __init__(self, port: AttemptPort) -> None:
        super().__init__(logging.getLogger(LOGGER), {})
        self._port = port
        self._fields: dict[str, object] | None = None

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        if self._fields is None:
            self._fields = _fields(self._port)
        kwargs["extra"] = {**self._fields, **(kwargs.get("extra") or {})}
        return msg, kwargs


def _fields(port: AttemptPort) -> dict[str, object]:
    job = port.job
    fields: dict[str, object] = {
        "job_id": job.id,
        "job_type": job.type,
        "job_attempt": job.attempt,
        "job_queue": job.queue,
        "job_tenant": job.tenant,
        "job_correlation_id": job.correlation_id,
        "job_workflow_id": job.workflow_id,
    }
    if port.job_type.options.log_context is not None:
        fields["job_context"] = _context(port)
    return fields


def _context(port: AttemptPort) -> Mapping[str, object]:
    """In a field of its own: a record refuses keys such as `name`. A broken function must not break a handler."""
    derive = port.job_type.options.log_context
    assert derive is not None
    try:
        return dict(derive(port.job_type.decode_input(port.job.input)))
    except Exception as error:  # the user's function may raise anything
        return {"log_context_failed": repr(error)}
