"""The base class of every family of the contract suite, its fixtures, and the choice of tests for a store.

The test class of a backend defines the fixture `backend`, from which the other fixtures are made. It names the
capabilities of its store, and then contains only the tests that need no other capability.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from types import FunctionType
from typing import Any, ClassVar, Final, TypeVar, cast

import pytest
import pytest_asyncio

from ropewalk.ports.store.capabilities import ALL, Capability
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.bench import Bench

T = TypeVar("T", bound="type | Callable[..., Any]")

_NEEDS: Final = "_ropewalk_needs"
"""Name of the attribute in which a family or a test keeps the capabilities that it needs."""


def needs(*capabilities: Capability[Any]) -> Callable[[T], T]:
    """Mark a family, or one test of a family, that only stores with these capabilities can pass."""

    def mark(target: T) -> T:
        setattr(target, _NEEDS, frozenset(capabilities))
        return target

    return mark


def case(*values: object, of: tuple[Capability[Any], ...], id: str | None = None) -> Any:  # noqa: A002  pytest's word
    """Return one case for `pytest.mark.parametrize` that only stores with these capabilities can pass."""
    return pytest.param(*values, marks=pytest.mark.ropewalk_needs(*of), id=id)


def _fitting(test: Any, family: type, capabilities: frozenset[Capability[Any]]) -> Any:
    """Return a copy of the test with only the cases that such a store can pass, or None if there are none."""
    if not {*vars(family).get(_NEEDS, ()), *getattr(test, _NEEDS, ())} <= capabilities:
        return None
    marks: list[pytest.Mark] = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            values = [each for each in mark.args[1] if _needed(each) <= capabilities]
            if not values:
                return None
            marks.append(pytest.mark.parametrize(mark.args[0], values, **mark.kwargs).mark)
        else:
            marks.append(mark)
    assert isinstance(test, FunctionType)
    fitting = FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    functools.update_wrapper(fitting, test)
    fitting.__kwdefaults__ = test.__kwdefaults__
    vars(fitting).pop("__wrapped__")
    fitting.pytestmark = marks  # type: ignore[attr-defined]
    return fitting


def _needed(case: object) -> frozenset[Capability[Any]]:
    """Return the capabilities that a case of `pytest.mark.parametrize` needs, if `case` made it."""
    marks = cast("list[pytest.Mark]", getattr(case, "marks", ()))
    return frozenset(each for mark in marks if mark.name == "ropewalk_needs" for each in mark.args)


class Contract:
    """A family of the contract suite: tests of one behaviour, written against the fixture `bench`."""

    pytestmark = pytest.mark.asyncio

    capabilities: ClassVar[frozenset[Capability[Any]]] = ALL
    """The capabilities that the store under test declares; a test class overrides it if its store lacks some."""

    def __init_subclass__(cls) -> None:
        """Refuse a test name that two families define, and leave out the tests that the store cannot pass.

        Families are combined by inheritance, so a test whose name is used twice would silently not run.
        """
        families: dict[str, type] = {}
        for family in cls.__mro__:
            for name, test in vars(family).items():
                if name.startswith("test_") and test is not None:
                    first = families.setdefault(name, family)
                    assert first is family, f"{first.__name__} and {family.__name__} both define {name}"
        if cls.capabilities != ALL:
            for name, family in families.items():
                setattr(cls, name, _fitting(vars(family)[name], family, cls.capabilities))

    @pytest.fixture
    def backend(self) -> Backend:
        """Return a new, empty backend; the test class of a store must define this fixture."""
        raise NotImplementedError(f"{type(self).__name__} must define a fixture `backend` that returns a Backend")

    @pytest.fixture
    def runtime(self) -> FakeRuntime:
        """Return the fake clock that the store and the test share."""
        return FakeRuntime()

    @pytest_asyncio.fixture
    async def bench(self, backend: Backend, runtime: FakeRuntime) -> AsyncIterator[Bench]:
        """Yield a bench with an opened, empty store under the fake clock, and close the backend afterwards."""
        store = await backend.open(runtime)
        yield Bench(store, runtime, backend)
        await backend.close()
