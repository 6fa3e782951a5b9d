"""Stored schedules refer to functions by name. This module finds those that this process has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias, cast

from ropewalk.definitions.schedule import DeclaredSchedule, NextFunction, RunFunction, function_name
from ropewalk.domain.schedules.schedule import Following
from ropewalk.domain.time import Instant, to_datetime, to_instant
from ropewalk.errors import DefinitionError, InvalidInput

AnyFunction: TypeAlias = Callable[[datetime], Any]


class ScheduleFunctions:
    """The functions of an app by their names: those that compute the times of a schedule, and those that make its
    jobs."""

    def __init__(self, functions: Iterable[AnyFunction] = ()) -> None:
        self._functions: dict[str, AnyFunction] = {}
        self.following: dict[str, Following] = {}
        """The functions in the form in which the domain calls them for the time of the next fire."""
        for function in functions:
            self.add(function)

    def add(self, function: AnyFunction) -> None:
        """Adds a function. Raises DefinitionError if another one has the same name."""
        name = function_name(function, "functions")
        known = self._functions.setdefault(name, function)
        if known is not function:
            raise DefinitionError(
                f"two functions of schedules are named {name!r}, in {_module(known)} and {_module(function)}: "
                "rename one of them, because they are stored by name"
            )
        self.following[name] = _following(function)

    def add_from(self, declared: DeclaredSchedule) -> None:
        """Adds the functions that a declared schedule names as objects."""
        options = declared.options
        for function in (options.get("next"), options.get("run")):
            if function is not None and not isinstance(function, str):
                self.add(function)

    def name_of(self, function: NextFunction | RunFunction | str, field: str) -> str:
        """Returns the name to store. Raises InvalidInput if the function is not registered with this app, because then
        perhaps no process could continue the schedule."""
        name = function_name(function, field)
        known = self._functions.get(name)
        if known is None or (not isinstance(function, str) and known is not function):
            raise InvalidInput(
                f"{field}={name!r} is not registered with this app: pass the function with App(functions=[...])",
                field=field,
            )
        return name

    def run(self, name: str) -> RunFunction | None:
        """Returns the function of this name that makes jobs; None if this process does not have it."""
        return cast("RunFunction | None", self._functions.get(name))


def _following(function: AnyFunction) -> Following:
    def following(after: Instant) -> Instant | None:
        answer = function(to_datetime(after))
        return None if answer is None else to_instant(answer, f"what next={function.__name__} answered")

    return following


def _module(function: AnyFunction) -> str:
    return str(getattr(function, "__module__", "?"))
