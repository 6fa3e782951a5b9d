"""The functions that stored schedules refer to by name, as far as this process has them."""

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
    """The functions of an app by their names: those that tell the times of a schedule, and those that make its jobs."""

    def __init__(self, functions: Iterable[AnyFunction] = ()) -> None:
        self._functions: dict[str, AnyFunction] = {}
        self.following: dict[str, Following] = {}
        """The functions as the domain calls them to learn the time of the next fire."""
        for function in functions:
            self.add(function)

    def add(self, function: AnyFunction) -> None:
        name = function_name(function, "functions")
        held = self._functions.setdefault(name, function)
        if held is not function:
            raise DefinitionError(
                f"two functions of schedules are named {name!r}, in {_module(held)} and {_module(function)}: "
                "rename one of them, because they are stored by name"
            )
        self.following[name] = _asked(function)

    def add_from(self, declared: DeclaredSchedule) -> None:
        """Add the functions that a declared schedule was given as objects."""
        options = declared.options
        for given in (options.get("next"), options.get("run")):
            if given is not None and not isinstance(given, str):
                self.add(given)

    def name_of(self, given: NextFunction | RunFunction | str, field: str) -> str:
        """The name to store. The function must be registered here, or nobody might ever go on with the schedule."""
        name = function_name(given, field)
        held = self._functions.get(name)
        if held is None or (not isinstance(given, str) and held is not given):
            raise InvalidInput(
                f"{field}={name!r} is not registered with this app: pass the function with App(functions=[...])",
                field=field,
            )
        return name

    def run(self, name: str) -> RunFunction | None:
        return cast("RunFunction | None", self._functions.get(name))


def _asked(function: AnyFunction) -> Following:
    def following(after: Instant) -> Instant | None:
        answer = function(to_datetime(after))
        return None if answer is None else to_instant(answer, f"what next={function.__name__} answered")

    return following


def _module(function: AnyFunction) -> str:
    return str(getattr(function, "__module__", "?"))
