"""The public entry points and their parameters, found by introspection."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Unpack

from msgspec import NODEFAULT, Struct

import ropewalk
from ropewalk import App, policies
from ropewalk.client.handle import Handle
from ropewalk.definitions.options import EnqueueOptions, JobTypeOptions, ProcessOptions
from ropewalk.definitions.schedule import ScheduleOptions
from ropewalk.testing import FakeRuntime, Rehearsal
from tests.inputs.values import RIGHT, WRONG, fresh_app, mail


class Entry(NamedTuple):
    name: str
    call: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    always: Mapping[str, Any]
    """What every call is given, beside what is required."""
    kind: str
    """Rows of the table that begin with it come before those of the parameter's name alone."""

    def wrong(self, parameter: str) -> tuple[object, ...] | None:
        rows = (f"{self.name}.{parameter}", f"{self.kind}.{parameter}", parameter)
        return next((WRONG[row] for row in rows if row in WRONG), None)

    def right(self, parameter: str) -> object:
        row = f"{self.name}.{parameter}"
        return RIGHT[row if row in RIGHT else parameter]

    def arguments(self, parameter: str, value: object) -> tuple[list[object], dict[str, object]]:
        """The arguments of a call in which nothing but this one is wrong."""
        args = list[object]()
        kwargs = {name: each for name, each in self.always.items() if name != INSTEAD.get(parameter)}
        for name, each in self.parameters.items():
            if name == parameter or (each.default is each.empty and name not in kwargs):
                given = value if name == parameter else self.right(name)
                if each.kind is each.POSITIONAL_ONLY:
                    args.append(given)
                else:
                    kwargs[name] = given
        return args, kwargs


INSTEAD: Final = {"cron": "every", "next": "every", "run": "job", "type": "queue", "key": "queue"}
"""What is not given beside these, because it says the same."""

OPTIONS: Final = (EnqueueOptions, ScheduleOptions, JobTypeOptions, ProcessOptions)

NOT_FOR_USERS: Final = {
    "decode_result",
    "enqueue_here",
    "wait_for_record",
    "wait_for_chain",
    "wait_for_group",
    "type_of",
}
"""Methods of an app that other parts of ropewalk call with what they have checked."""


def methods() -> list[str]:
    """The public methods of an app that take arguments."""
    found = [name for name, _ in inspect.getmembers(App, callable) if not name.startswith("_")]
    return [name for name in found if name not in NOT_FOR_USERS and parameters_of(getattr(App, name))]


def of_app(name: str) -> Entry:
    kind = "schedule" if "schedule" in name else "option" if "enqueue" in name else "method"
    always: dict[str, Any] = {}
    match name:
        case "set_limit":
            always = {"concurrency": 5, "queue": "some"}
        case "remove_limit":
            always = {"queue": "some"}
        case "purge":
            always = {"queue": "some"}
        case "update":
            always = {"priority": 1}
        case "create_schedule" | "schedule":
            always = {"every": 60, "job": mail()}
        case _:
            pass
    return _entry(name, getattr(fresh_app(), name), kind=kind, **always)


def constructors() -> list[Entry]:
    """What makes the values that methods of an app are given, or an app itself."""
    rehearsal, handle = Rehearsal(fresh_app()), Handle(fresh_app(), "some", mail)
    return [
        _entry("App", App),
        _entry("@job", _job_type, kind="@job"),
        _entry("@batch_job", _batch_type, kind="@job"),
        _entry("Job.using", mail().using, kind="option", depends_on="some", idempotency_key="some"),
        *(_entry(name, getattr(ropewalk, name)) for name in SETTINGS),
        *(_entry(name, getattr(policies, name)) for name in POLICIES),
        _entry("AppDefaults.of", ropewalk.AppDefaults.of),
        _entry("Retention.of", ropewalk.Retention.of),
        _entry("constant", ropewalk.Backoff.constant),
        _entry("linear", ropewalk.Backoff.linear),
        _entry("exponential", ropewalk.Backoff.exponential),
        _entry("schedule", ropewalk.schedule, kind="schedule", every=60, job=mail()),
        _entry("Rehearsal", Rehearsal),
        _entry("FakeRuntime", FakeRuntime),
        _entry("advance", rehearsal.advance),
        _entry("drain", rehearsal.drain),
        _entry("run", rehearsal.run),
        _entry("enqueued", rehearsal.enqueued),
        _entry("assert_enqueued", rehearsal.assert_enqueued),
        _entry("result", handle.result),
        _entry("group", handle.group),
        _entry("chain", handle.chain),
        _entry("cancel", handle.cancel),
    ]


SETTINGS: Final = [
    "AppDefaults",
    "Backoff",
    "Chain",
    "Count",
    "Filter",
    "Group",
    "Limit",
    "Bounds",
    "Logs",
    "Rate",
    "Redrive",
    "Retention",
    "RetryPolicy",
    "condition_met",
    "next_after",
    "next_attempt",
    "parse_cron",
    "register_type",
    "set_id_generator",
]
POLICIES: Final = ["AdaptiveDelay", "Age", "BacklogAlarm", "Balanced", "Priority", "RateLimited"]


def parameters_of(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Without `self`, and with the options that `**options` stands for."""
    if inspect.isclass(call) and issubclass(call, Struct):
        return _fields_of(call)
    found: dict[str, inspect.Parameter] = {}
    for name, each in inspect.signature(call).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            options = next((kind for kind in OPTIONS if kind.__name__ in str(each.annotation)), None)
            for option in options.__annotations__ if options else ():
                found[option] = inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None)
        elif each.kind is not each.VAR_POSITIONAL and name != "self":
            found[name] = each
    return found


def _fields_of(settings: type[Struct]) -> dict[str, inspect.Parameter]:
    """inspect would evaluate the annotations, whose names are imported for type checkers alone."""
    names, defaults = settings.__struct_fields__, settings.__struct_defaults__
    required = len(names) - len(defaults)
    return {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if place < required or defaults[place - required] is NODEFAULT else None,
        )
        for place, name in enumerate(names)
    }


def _entry(name: str, call: Callable[..., Any], *, kind: str = "", **always: Any) -> Entry:
    return Entry(name, call, parameters_of(call), always, kind or name)


def _job_type(*, executor: Any = "auto", **options: Unpack[ProcessOptions]) -> object:
    return ropewalk.job(executor=executor, **options)(_handler)


def _batch_type(
    *, size: Any = 5, max_wait: Any = 1, executor: Any = "auto", **options: Unpack[JobTypeOptions]
) -> object:
    return ropewalk.batch_job(size=size, max_wait=max_wait, executor=executor, **options)(_batch)


async def _handler(to: str) -> None: ...


async def _batch(items: list[int]) -> list[int]:
    return items
