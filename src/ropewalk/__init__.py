"""ropewalk: a typed, durable work queue and workflow engine.

>>> from ropewalk import App, job
>>> @job
... async def add(a: int, b: int) -> int:
...     return a + b
>>> app = App("sqlite:///jobs.db", jobs=[add])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropewalk.app import App
from ropewalk.client.filter import Filter
from ropewalk.client.handle import Handle
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.client.views.workflows import GroupInfo, WorkflowInfo
from ropewalk.definitions.codec.custom import register_type
from ropewalk.definitions.codec.tagged import ExceptionData
from ropewalk.definitions.context.context import Context, current
from ropewalk.definitions.dependency import Chain, Count, Group, condition_met
from ropewalk.definitions.job import Job, set_id_generator
from ropewalk.definitions.job_types.batch_decorator import batch_job
from ropewalk.definitions.job_types.batch_items import Batch
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.limit import Limit
from ropewalk.definitions.middleware import CallNext, Middleware
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.definitions.registry import Registry
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.retrying import NextAttempt, RetryPolicy, next_attempt
from ropewalk.definitions.schedule import schedule
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.operations import CancelStatus, RetryStatus
from ropewalk.domain.jobs.order import Priority
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import State
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.retention import Retention
from ropewalk.domain.schedules.cron import Cron, parse_cron
from ropewalk.domain.schedules.fire_times import next_after
from ropewalk.domain.search import Order
from ropewalk.domain.secret_marks import Secret
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.errors import (
    Abort,
    BeyondTenant,
    Conflict,
    Defer,
    DefinitionError,
    GroupFailed,
    InvalidInput,
    JobCancelled,
    JobFailed,
    LeaseLost,
    LimitExceeded,
    NeverEnqueued,
    NotFound,
    OutcomeUnknown,
    PartlyEnqueued,
    QuotaExceeded,
    Retry,
    RevMismatch,
    RopewalkError,
    SchemaMismatch,
    SpawnMismatch,
    StoreRefused,
    StoreUnavailable,
    TransactionNotCompleted,
    UnexpectedExit,
    UnknownJobType,
    UnregisteredJobType,
    UnsharedStore,
    Unsupported,
    WaitTimeout,
    WeakDurability,
)
from ropewalk.observe.events import Event
from ropewalk.worker.services.orphan_groups import OrphanGroup
from ropewalk.worker.services.redriver import Redrive

if TYPE_CHECKING:
    import sqlite3

    default: App

__all__ = [
    "Abort",
    "App",
    "AppDefaults",
    "Backoff",
    "Batch",
    "BeyondTenant",
    "Bounds",
    "CallNext",
    "CancelStatus",
    "Chain",
    "Conflict",
    "Context",
    "Count",
    "Cron",
    "Defer",
    "DefinitionError",
    "Event",
    "ExceptionData",
    "Filter",
    "Group",
    "GroupFailed",
    "GroupInfo",
    "Handle",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobInfo",
    "JobType",
    "LeaseLost",
    "Limit",
    "LimitExceeded",
    "Logs",
    "Middleware",
    "NeverEnqueued",
    "NextAttempt",
    "NotFound",
    "Order",
    "OrphanGroup",
    "OutcomeUnknown",
    "PartlyEnqueued",
    "Priority",
    "QuotaExceeded",
    "Rate",
    "Redrive",
    "Registry",
    "Result",
    "Retention",
    "Retry",
    "RetryPolicy",
    "RetryStatus",
    "RevMismatch",
    "RopewalkError",
    "ScheduleInfo",
    "SchemaMismatch",
    "Secret",
    "SpawnMismatch",
    "State",
    "Statistics",
    "StoreRefused",
    "StoreUnavailable",
    "TransactionNotCompleted",
    "UnexpectedExit",
    "UnknownJobType",
    "UnregisteredJobType",
    "UnsharedStore",
    "Unsupported",
    "WaitTimeout",
    "WeakDurability",
    "WorkflowInfo",
    "batch_job",
    "condition_met",
    "current",
    "default",
    "job",
    "next_after",
    "next_attempt",
    "parse_cron",
    "register_type",
    "schedule",
    "set_id_generator",
    "sqlite3",
]


def __getattr__(name: str) -> object:
    """`ropewalk.default`: an app made on first access from $ROPEWALK_URL, for scripts.

    `ropewalk.sqlite3`: the SQLite library that this process must use for files that are stores.
    """
    if name == "default":
        app = globals()["default"] = App()
        return app
    if name == "sqlite3":
        from ropewalk.backends.sqlite.library import sqlite

        return sqlite
    raise AttributeError(f"module 'ropewalk' has no attribute {name!r}")
