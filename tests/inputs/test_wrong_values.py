"""Every parameter of every public entry point refuses what does not fit: with a typed error that names the parameter
and the value, before anything is written.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, cast

import pytest

import ropewalk
from ropewalk import App, DefinitionError, InvalidInput, policies
from tests.inputs.entries import NOT_FOR_USERS, POLICIES, SETTINGS, Entry, constructors, methods, of_app, parameters_of
from tests.inputs.values import fresh_app

ANYTHING: Final = {"value", "connection"}
"""What can be stored is the codec's to say, and what is a connection the store's: tests/joining is about that."""


def cases() -> list[Any]:
    entries = [*map(of_app, methods()), *constructors()]
    return [pytest.param(e, p, id=f"{e.name}-{p}") for e in entries for p in e.parameters if p not in ANYTHING]


@pytest.mark.parametrize(("entry", "parameter"), cases())
async def test_what_does_not_fit_is_refused(entry: Entry, parameter: str) -> None:
    wrong = entry.wrong(parameter)
    assert wrong is not None, f"add a row for {parameter!r} of {entry.name} to tests/inputs/values.py"
    app = getattr(entry.call, "__self__", None)
    before = await everything_in(app)
    for value in wrong:
        args, kwargs = entry.arguments(parameter, value)
        with pytest.raises((InvalidInput, DefinitionError)) as refused:
            await carried_out(entry.call, args, kwargs)
            pytest.fail(f"{entry.name}({parameter}={value!r}) was accepted")
        assert names_it(entry.name, parameter, value, str(refused.value)), f"{value!r}: {refused.value}"
        assert await everything_in(app) == before


async def carried_out(call: Any, args: list[object], kwargs: Mapping[str, object]) -> None:
    answer: object = call(*args, **kwargs)
    if inspect.isawaitable(answer):
        await answer
    elif isinstance(answer, AsyncIterator):
        await anext(cast("AsyncIterator[object]", answer))
    elif isinstance(answer, AbstractAsyncContextManager):
        async with cast("AbstractAsyncContextManager[object]", answer):
            pass


CALLED: Final = {
    "parse_cron.expression": "cron",
    "next_after.expression": "cron",
    "tenant.name": "tenant",
    "Group.of": "depends_on",
    "Chain.of": "depends_on",
}
"""What messages call it, where that is another word."""


def names_it(entry: str, parameter: str, value: object, message: str) -> bool:
    """The message has the name of the parameter, and the value or one of its items."""
    shown = [getattr(each, "__name__", repr(each)[:30]) for each in (value, *inside(value))]
    special = ("is empty", "is over", "contains", "characters", "function", "very many digits", "only once")
    named = CALLED.get(f"{entry}.{parameter}", parameter.removesuffix("_us"))
    return named in message and any(each in message for each in (*shown, *special))


def inside(value: object) -> list[object]:
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return [*items, *items.values()]
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else []


async def everything_in(app: object) -> object:
    if not isinstance(app, App):
        return None
    paused = [each.paused for each in await app.queues()]
    return await app.count(), await app.limits(), await app.quotas(), await app.schedules(), paused


# ── nothing is left out ─────────────────────────────────────────────────────────────────────────────────────────────

TOLD: Final = {
    "Batch",
    "Context",
    "Cron",
    "Event",
    "ExceptionData",
    "Handle",
    "Job",
    "JobType",
    "Load",
    "NextAttempt",
    "Offer",
    "OrphanGroup",
    "Result",
    "Statistics",
}
"""Made by ropewalk: people are given them, and make none."""


def test_every_public_name_that_takes_values_is_an_entry_point() -> None:
    made_by_people = {
        name
        for module in (ropewalk, policies)
        for name in module.__all__
        if name not in {"default", "sqlite3"} and takes_values(getattr(module, name)) and name not in TOLD
    }
    covered = {"App", "job", "batch_job", "schedule", *SETTINGS, *POLICIES}
    assert made_by_people - covered == set()


def takes_values(public: Any) -> bool:
    if inspect.isclass(public):
        bases = {each.__name__ for each in public.__mro__}
        if bases & {"Enum", "BaseException", "Protocol"} or public.__name__.endswith("Info"):
            return False
    return callable(public) and bool(parameters_of(public))


def test_what_is_left_out_of_an_app_is_there() -> None:
    assert all(callable(getattr(fresh_app(), name)) for name in NOT_FOR_USERS)
