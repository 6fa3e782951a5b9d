"""The options of a worker as one type, for functions that pass them on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.policies import Concurrency
from ropewalk.domain.time import Seconds
from ropewalk.worker.policies.admission import Accept
from ropewalk.worker.policies.backlog import BacklogAlarm
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Hook
from ropewalk.worker.services.redriver import Redrive


class WorkerOptions(TypedDict, total=False):
    """The parameters of `app.worker(...)` except `processes`."""

    queues: Iterable[str] | None
    types: JobType[..., Any, Any] | str | Iterable[JobType[..., Any, Any] | str] | None
    tenants: Iterable[str] | None
    concurrency: Concurrency
    lease: Seconds | None
    grace: Seconds
    poll: Seconds
    accept: Accept | None
    backpressure: Hook | AdaptiveDelay | None
    backlog_alarm: BacklogAlarm | None
    scheduler: bool
    redrive: Redrive | None
