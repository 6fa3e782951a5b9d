"""A claimed job that has not started, as `accept=` and a policy's `per=` see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import to_datetime


class Offer:
    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any]) -> None:
        self._job = job
        self._job_type = job_type
        self.type = job.type
        self.id = job.id
        self.queue = job.queue
        self.tenant = job.tenant
        self.priority = job.priority
        self.attempt = job.attempt
        """which attempt it would be"""
        self.max_attempts = job.max_attempts
        self.fairness = job.fairness
        self.tags: Mapping[str, str] = job.tags
        self.correlation_id = job.correlation_id
        self.workflow_id = job.workflow_id

    @property
    def created_at(self) -> datetime:
        return to_datetime(self._job.created_at)

    @property
    def scheduled_for(self) -> datetime:
        """since when it is ready"""
        return to_datetime(self._job.run_at)

    @cached_property
    def arguments(self) -> Mapping[str, object]:
        """Decoded when asked for. Raises InvalidInput where they do not fit the type."""
        return self._job_type.decode_input(self._job.input)
