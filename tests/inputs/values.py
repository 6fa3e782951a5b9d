"""What is wrong for a parameter, and what is right: by its name, or by `entry.name` where an entry point differs.

A new parameter of a public entry point needs a row here; `test_wrong_values.py` fails until it has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from ropewalk import App, Bounds, Job, job
from ropewalk.testing import FakeRuntime


@job
async def mail(to: str = "a@b.c") -> str:
    return to


def no_coroutine() -> Job[Any, Any]:
    """A call that was forgotten."""
    return mail  # type: ignore[return-value] # that is the point


NAMELESS: Final = partial(no_coroutine)
"""A function that cannot be stored by its name."""
EMPTY: Final[dict[str, object]] = {}
NAIVE: Final = datetime(2026, 1, 1)  # noqa: DTZ001  # that is the point
LONG: Final = "x" * 257

TEXT: Final = (None, 3, b"x", "", "a\0b", "\ud800", ["x"])
TEXT_OR_NONE: Final = TEXT[1:]
NAME: Final = (*TEXT, LONG)
NAME_OR_NONE: Final = NAME[1:]
MESSAGE: Final = (3, b"x", "a\0b", "\ud800")
NAMES: Final = (3, b"x", "", [""], [3], ["a", None], {"a": 1}, "a\0b")
FLAG: Final = (None, 1, 0, "yes")
WHOLE: Final = (None, "3", 1.5, True, math.nan, 10**400)
POSITIVE: Final = (*WHOLE, 0, -1)
POSITIVE_OR_NONE: Final = POSITIVE[1:]
DURATION: Final = ("5", math.nan, math.inf, -math.inf, True, 10**400, 1e300, b"5")
NOT_NEGATIVE: Final = (*DURATION, None, -1)
DURATION_OR_NONE: Final = (*DURATION, -1, 0)
LONGER_THAN_NOTHING: Final = (*DURATION, None, -1, 0)
SPAN_US_OR_NONE: Final = ("5", 1.5, math.nan, True, -1)
MOMENT: Final = (None, "2026-01-01", 1_700_000_000, NAIVE)
MOMENT_OR_NONE: Final = MOMENT[1:]
FUNCTION: Final = (None, 3, "f")
FUNCTION_OR_NONE: Final = FUNCTION[1:]
OBJECT_OR_NONE: Final = (3, "x", EMPTY)
OBJECT: Final = (None, *OBJECT_OR_NONE)
TAGS: Final = (None, 3, "a", ["a"], {"a": 1}, {1: "a"}, {"a\0": "b"}, {"a": "b\0"})
JOB: Final = (None, 3, mail, no_coroutine, [mail()])

WRONG: Final[Mapping[str, tuple[object, ...]]] = {
    # ── ids, names and other text ──
    "job_id": TEXT,
    "from_step": TEXT_OR_NONE,
    "group_id": TEXT,
    "workflow_id": TEXT,
    "worker_id": TEXT,
    "name": TEXT,
    "key": NAME,
    "queue": NAME,
    "tenant": NAME,
    "tag": TEXT,
    "expression": (None, 3, "", "* * *", "61 * * * *"),
    "ids": (None, *NAMES),
    "queues": NAMES,
    "tenants": NAMES,
    "types": (3, b"x", "", [""], [3], {"a": 1}),
    "error_codes": NAMES,
    "secret_keys": (None, *NAMES),
    "parent_id": TEXT_OR_NONE,
    "correlation_id": TEXT_OR_NONE,
    "text": TEXT_OR_NONE,
    "cursor": (*TEXT_OR_NONE, "nonsense"),
    "reason": MESSAGE,
    "fairness": TEXT_OR_NONE,
    "id": TEXT,
    "idempotency_key": TEXT,
    "workflow_type": TEXT,
    "url": (3, b"x", "", "redis://x", "no-scheme"),
    # ── one of a few ──
    "states": (3, "skeduled", ("skeduled",), [None], {"failed": 1}),
    "error_categories": (3, "temp", ["temp"]),
    "order": (None, 3, "newest"),
    "by": (None, 3, "colour"),
    "missed": (None, 3, "never"),
    "idempotency_scope": (None, 3, "all"),
    "when": (None, 3, "all", ["all_done"]),
    "include": (None, 3, "everything", ["history", "logz"], {"logs": 1}),
    "on_unsatisfied": (3, "explode"),
    "of": (None, 3, "failed"),
    "algorithm": (None, 3, "leaky"),
    "executor": (None, 3, "fiber"),
    "keep": (3, "LOUD", "info"),
    "strategy": (None, 3, "quadratic"),
    # ── flags ──
    **dict.fromkeys(
        [
            "force",
            "dry_run",
            "reset_attempts",
            "fresh",
            "include_cancelled",
            "cascade",
            "all_attempts",
            "raise_on_failure",
            "every_tenant",
            "failures_only",
            "atomic",
            "skip_queue",
            "allow_missing",
            "scheduler",
            "reset",
            "metrics",
            "allow_weaker_durability",
            "migrate",
            "strict_return",
            "strict_order",
            "ageing",
            "deep",
            "inline",
        ],
        FLAG,
    ),
    "strict": FLAG[1:],
    # ── whole numbers ──
    "limit": (*POSITIVE, 1001),
    "failure_counts.limit": POSITIVE,
    "count.limit": POSITIVE_OR_NONE,
    "if_rev": POSITIVE_OR_NONE,
    "of_run": POSITIVE_OR_NONE,
    "nodes_max": (*WHOLE, -1),
    "upcoming": (*WHOLE, -1, 1001),
    "slices": (*POSITIVE, 1001),
    "priority": (*WHOLE[1:], 1001),
    "priorities": ("3", 1.5, True, ["3"], [None]),
    "max_attempts": POSITIVE_OR_NONE,
    "max_crashes": POSITIVE,
    "memory_mb": POSITIVE,
    "size": POSITIVE,
    "batch": POSITIVE,
    "max_times": POSITIVE,
    "count": POSITIVE,
    "n": POSITIVE,
    "pending": (*POSITIVE_OR_NONE, 10**9),
    "running": POSITIVE_OR_NONE,
    "payload_bytes": POSITIVE_OR_NONE,
    "concurrency": POSITIVE,
    "set_limit.concurrency": POSITIVE_OR_NONE,
    "Limit.concurrency": POSITIVE_OR_NONE,
    "ahead": POSITIVE_OR_NONE,
    "seed": (None, "3", 1.5),
    # ── numbers ──
    "jitter": ("1", math.nan, -0.1, 1.1, True),
    "multiplier": ("1", math.nan, math.inf, 0.5, True),
    "factor": ("1", math.nan, math.inf, 1, 0.5),
    "failures": ("1", math.nan, -0.1, 1, True),
    # ── durations ──
    "delay": (*DURATION, None),
    "constant.delay": NOT_NEGATIVE,
    "timeout": DURATION,
    "ttl": LONGER_THAN_NOTHING,
    "lease": LONGER_THAN_NOTHING,
    "gate_timeout": LONGER_THAN_NOTHING,
    "idempotency_window": LONGER_THAN_NOTHING,
    "last": LONGER_THAN_NOTHING,
    "window": LONGER_THAN_NOTHING,
    "every": LONGER_THAN_NOTHING,
    "older_than": NOT_NEGATIVE,
    "grace": NOT_NEGATIVE,
    "poll": LONGER_THAN_NOTHING,
    "max_wait": NOT_NEGATIVE,
    "initial": NOT_NEGATIVE,
    "max": NOT_NEGATIVE,
    "first": LONGER_THAN_NOTHING,
    "step": LONGER_THAN_NOTHING,
    **dict.fromkeys(("handler", "settle", "lag"), (*DURATION, -1)),
    **dict.fromkeys(("completed", "failed", "dead_letter", "cancelled", "results", "statistics"), (*DURATION, -1)),
    **dict.fromkeys(
        [
            "completed_us",
            "failed_us",
            "dead_letter_us",
            "cancelled_us",
            "results_us",
            "statistics_us",
            "timeout_us",
            "ttl_us",
            "lease_us",
            "initial_us",
            "max_us",
        ],
        SPAN_US_OR_NONE,
    ),
    **dict.fromkeys(("seconds", "minutes", "hours", "days"), ("1", None, math.nan, math.inf, -1)),
    "AppDefaults.of.timeout": DURATION_OR_NONE,
    "AppDefaults.of.ttl": DURATION_OR_NONE,
    "AppDefaults.of.lease": DURATION_OR_NONE,
    "worker.lease": (*DURATION, -1, 0, 0.5),
    "BacklogAlarm.every": DURATION_OR_NONE,
    **{f"{name}.max": POSITIVE for name in ("Priority", "Age", "Balanced")},
    "RateLimited.max": POSITIVE_OR_NONE,
    "RateLimited.limit": POSITIVE,
    "RateLimited.per": FUNCTION_OR_NONE,
    "AdaptiveDelay.max": LONGER_THAN_NOTHING,
    "per": LONGER_THAN_NOTHING,
    # ── moments ──
    "run_at": MOMENT,
    "deadline": MOMENT,
    "after": MOMENT,
    "start": MOMENT,
    "until": MOMENT_OR_NONE,
    "created_after": MOMENT_OR_NONE,
    "created_before": MOMENT_OR_NONE,
    "updated_after": MOMENT_OR_NONE,
    "update.run_at": MOMENT_OR_NONE,
    "timezone": (None, 3, "", "Europe/Olso", "a\0b"),
    "cron": (None, 3, "", "* * *"),
    # ── objects ──
    "job": JOB,
    "enqueue_many.jobs": (None, 3, "mail", mail, [mail], [None]),
    "jobs": (None, *NAMES),
    "App.jobs": (None, 3, "mail", [3], ["mail"], no_coroutine),
    "arguments": (3, "x", ["x"]),
    "using": (3, "x", ["queue"], {1: "queue"}),
    "processes": POSITIVE_OR_NONE,
    "error": (None, 3, "", "a\0b"),
    "wanted": OBJECT_OR_NONE,
    "job_type": OBJECT,
    "enqueued.job_type": OBJECT_OR_NONE,
    "type": (3, "", b"x", [mail]),
    "rate": OBJECT_OR_NONE,
    "total": OBJECT_OR_NONE,
    "submissions": OBJECT_OR_NONE,
    "backoff": OBJECT_OR_NONE,
    "tags": TAGS,
    "Filter.tags": TAGS[1:],
    "depends_on": (None, 3, "", "a\0b", [None], {"a": 1}, iter(["a"])),
    "on_failure": OBJECT_OR_NONE,
    "defaults": OBJECT_OR_NONE,
    "bounds": OBJECT,
    "store": OBJECT_OR_NONE,
    "App.retention": OBJECT_OR_NONE,
    "App.logs": OBJECT_OR_NONE,
    "App.types": (),
    "Retention.types": (None, 3, ["a"], {1: 3}, {"a": "b"}, {"a": -1}),
    "Retention.of.types": (3, ["a"], {1: 3}, {"a": "b"}, {"a": -1}),
    "runtime": OBJECT_OR_NONE,
    "tracing": OBJECT_OR_NONE,
    "lifespan": FUNCTION_OR_NONE,
    "middlewares": (None, 3, "x", [3], [no_coroutine]),
    "requires": (None, 3, "x", [3]),
    "schedules": (None, 3, "x", [3]),
    "functions": (None, 3, "x", [3], NAMELESS),
    "clock": OBJECT_OR_NONE,
    "app": OBJECT,
    "codec": OBJECT,
    "Group.of": (None, 3, "", "a\0b", EMPTY),
    "Chain.of": (None, 3, "", "a\0b", EMPTY),
    **{f"Bounds.{name}": (*WHOLE, -1) for name in Bounds.__struct_fields__},
    "redrive": OBJECT_OR_NONE,
    "backlog_alarm": OBJECT_OR_NONE,
    "connection": OBJECT_OR_NONE,
    **dict.fromkeys(
        ("on_event", "on_error", "on_orphan_group", "accept", "backpressure", "generate"), FUNCTION_OR_NONE
    ),
    **dict.fromkeys(("decide", "options", "log_context", "unique", "encode", "decode"), FUNCTION),
    "AppDefaults.decide": FUNCTION_OR_NONE,
    "RetryPolicy.decide": FUNCTION_OR_NONE,
    "next_attempt.error": (None, 3, "x", ValueError),
    "attempt": POSITIVE,
    "policy": OBJECT,
    "random": FUNCTION_OR_NONE,
    "condition_met.states": (3, "skeduled", ["skeduled"], {"failed": 1}),
    "AppDefaults.of.decide": FUNCTION_OR_NONE,
    "retry_on": (None, 3, "x", [3], int),
    "abort_on": (None, 3, "x", [3], int),
    "cls": (None, 3, "x"),
    "next": (None, 3, "", NAMELESS),
    "run": (None, 3, "", NAMELESS),
    # ── where one name means different things ──
    **{f"Filter.{name}": TEXT_OR_NONE for name in ("workflow_id", "group_id")},
    **{f"set_limit.{name}": NAME_OR_NONE for name in ("queue", "key")},
    **{f"remove_limit.{name}": NAME_OR_NONE for name in ("queue", "key")},
    "purge.queue": TEXT_OR_NONE,
    "stats.queue": TEXT_OR_NONE,
    "method.id": TEXT_OR_NONE,
    "schedule.id": TEXT_OR_NONE,
    "Rehearsal.timeout": LONGER_THAN_NOTHING,
    "drain.attempts_max": POSITIVE,
    "Limit.key": (3, b"x", "", "a\0b", "family:*"),
    "@job.limit": (None, 3, "", "family:*"),
    "@job.on_event": FUNCTION,
    "@job.on_failure": OBJECT_OR_NONE,
    "@job.name": TEXT_OR_NONE,
    "@batch_job.name": TEXT,
    "named.job_type": TEXT,
    "retry.arguments": (),
    "update.arguments": (),  # They are checked by the type of the job, which must be there: see test_messages.py.
    "named.arguments": ("x", ["x"]),
    "@job.fairness": TEXT,
    "@job.max_attempts": POSITIVE_OR_NONE,
    "@job.queue": TEXT,
    "@job.timeout": LONGER_THAN_NOTHING,
    "@job.priority": WHOLE,
    "AppDefaults.priority": WHOLE[1:],
    "AppDefaults.of.priority": WHOLE[1:],
    "AppDefaults.queue": TEXT,
    "AppDefaults.of.queue": TEXT,
    "AppDefaults.timeout_us": (*SPAN_US_OR_NONE, 0),
    "option.limit": (3, "", "family:*"),
    "option.queue": TEXT,
    "option.tenant": TEXT,
    "option.timeout": LONGER_THAN_NOTHING,
    "option.workflow_id": TEXT,
    "option.correlation_id": TEXT,
    "option.priority": WHOLE,
    "option.id": TEXT,
    "schedule.tenant": TEXT,
    "schedule.job": (None, 3, mail),
    "pause_schedule.name": TEXT,
    "signal.name": NAME,
    "tenant.name": NAME,
    "create_schedule.name": NAME,
    "run.job": JOB,
}

RIGHT: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("job_id", "group_id", "workflow_id", "worker_id", "name", "key", "queue", "tag", "ids"), "some"),
    "job": mail(),
    "jobs": ["some"],
    "enqueue_many.jobs": [mail()],
    "job_type": mail,
    "error": "broken",
    "next_attempt.error": ValueError("broken"),
    "attempt": 1,
    "when": "all_done",
    "states": [],
    "expression": "@daily",
    "after": datetime.fromisoformat("2026-01-01T00:00:00Z"),
    "count": 5,
    "per": 60,
    "max": 5,
    "limit": 5,
    "window": 60,
    "older_than": 60,
    "types": [mail],
    "delay": 5,
    "n": 1,
    "cls": complex,
    "encode": str,
    "decode": complex,
    "generate": None,
    "timeout": None,
    "named.job_type": "mail",
    "arguments": {},
    "app": App("memory://", jobs=[mail]),
    "Group.of": "some",
    "Chain.of": "some",
    "tag": "complex",
}
"""What a required parameter is given while another one is wrong."""


def fresh_app() -> App:
    return App("memory://", jobs=[mail], runtime=FakeRuntime())
