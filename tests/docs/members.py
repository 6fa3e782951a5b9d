"""What the tables of the docs must be complete in, read from the code itself: name of the table → its members."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import get_args

from ropewalk import App, AppDefaults, Bounds, Context, Filter, Logs, Redrive, Retention, errors
from ropewalk.client.store_client import StoreClient
from ropewalk.definitions.options import EnqueueOptions, ProcessOptions
from ropewalk.definitions.schedule import ScheduleOptions
from ropewalk.domain.why import Cause
from ropewalk.observe.events import EventKind
from ropewalk.observe.metrics.catalogue import ALL

NOT_FOR_USERS = {
    "Client": {
        *("wait_for_record", "wait_for_group", "wait_for_chain", "decode_result", "type_of"),  # for handles
        *("enqueue_here", "named"),  # for the blocking face
    },
    "Context": {
        "unreturned",
        "calls",
        "never_awaited",
        "steps",
        "steps_ended",
        "alone",
        "port",
        "spawned",
        "join",
        "without_steps",
        "raise_step_fault",
        "has_calls",
        "completion",
        "completed_with",
        "attempt_key",
        "child_ids",
    },  # for the engine
}


def members() -> dict[str, set[str]]:
    return {
        "JobTypeOptions": {"executor", *ProcessOptions.__annotations__},
        "EnqueueOptions": set(EnqueueOptions.__annotations__),
        "ScheduleOptions": set(ScheduleOptions.__annotations__),
        "Bounds": set(Bounds.__struct_fields__),
        "Filter": set(Filter.__struct_fields__),
        "App": parameters(App),
        "App.worker": parameters(App.worker),
        "AppDefaults.of": parameters(AppDefaults.of),
        "Retention.of": parameters(Retention.of),
        "Redrive": set(Redrive.__struct_fields__),
        "EventKind": set(get_args(EventKind)),
        "Cause": set(get_args(Cause)),
        "Client": public(StoreClient) - NOT_FOR_USERS["Client"],
        "Context": (public(Context) | {"sync", "log"}) - NOT_FOR_USERS["Context"],
        "errors": exceptions(),
        "metrics": {metric.name for metric in ALL},
        "Logs": set(Logs.__struct_fields__),
    }


def parameters(function: Callable[..., object]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "cls"}


def public(kind: type) -> set[str]:
    return {name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")}


def exceptions() -> set[str]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name for name, kind in found if issubclass(kind, BaseException)}
