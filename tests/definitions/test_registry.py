"""D2: job types by name; slices merge; duplicates and unknown names are clear errors."""

from __future__ import annotations

from datetime import datetime
from types import ModuleType
from typing import Any

import pytest

from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.registry import Registry
from ropewalk.errors import DefinitionError, UnknownJobType


@job
async def add(a: int, b: int) -> int: ...


@job
async def send_mail(to: str) -> None: ...


@job(name="add")
async def other_add(a: int) -> int: ...


def test_it_holds_types_registries_and_modules() -> None:
    module = ModuleType("somewhere")
    vars(module).update(add=add, text="x", function=print)
    registry = Registry(Registry(send_mail), module)
    registry.add(add)
    assert registry.names() == ["send_mail", "add"]
    assert list(registry) == [send_mail, add]
    assert len(registry) == 2
    assert registry.get("add") is add
    assert "add" in registry
    assert add in registry
    assert other_add not in registry
    assert "nope" not in registry
    assert repr(registry) == "Registry(send_mail, add)"


def test_two_types_of_one_name() -> None:
    with pytest.raises(DefinitionError) as refusal:
        Registry(add, other_add)
    assert f"two job types are named 'add': {__name__}.add and {__name__}.other_add" in str(refusal.value)
    assert Registry(add, Registry(add)).names() == ["add"]


def test_unknown_names_come_with_suggestions() -> None:
    registry = Registry(add, send_mail)
    with pytest.raises(UnknownJobType) as refusal:
        registry.get("sendmail")
    assert str(refusal.value) == (
        "no job type named 'sendmail' is registered here; did you mean 'send_mail'? Registered: add, send_mail"
    )
    with pytest.raises(UnknownJobType, match=r"no job type named 'x' is registered here\. Registered: none"):
        Registry().get("x")


@pytest.mark.parametrize("item", [print, "add", None, add.handler])
def test_other_things_are_refused(item: Any) -> None:
    with pytest.raises(DefinitionError, match="is the function decorated with @job"):
        Registry(item)


def test_wrong_declarations_surface_here() -> None:
    @job
    async def wrong(a: int, when: str | datetime) -> None: ...

    registry = Registry()
    with pytest.raises(DefinitionError, match="parameter 'when'"):
        registry.add(wrong)
    assert registry.names() == []


def test_so_do_compensations_that_do_not_fit() -> None:
    @job(on_failure=send_mail)
    async def pay(cents: int) -> None: ...

    with pytest.raises(DefinitionError, match="on_failure=send_mail: it requires to, which pay does not take"):
        Registry(pay)


def test_enqueue_by_name_builds_the_same_job() -> None:
    built = Registry(add).get("add").from_arguments({"b": 2, "a": 1})
    assert built.input == add(1, 2).input
    assert built.type is add
