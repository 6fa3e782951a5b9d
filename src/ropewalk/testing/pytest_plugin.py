"""The pytest plugin: an enqueue that was never awaited fails its test, and two fixtures.

`ropewalk_clock` is a fake clock; `rehearse(app)` gives an in-memory double of an app on that clock.
A test that means to drop an enqueue says so with `@pytest.mark.allow_never_enqueued`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ropewalk.app import App
    from ropewalk.testing.clock import FakeRuntime
    from ropewalk.testing.rehearsal import Rehearsal


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "allow_never_enqueued: this test drops an enqueue on purpose")
    config.addinivalue_line("markers", "ropewalk_needs(*capabilities): for stores with these (the contract suite)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if item.get_closest_marker("allow_never_enqueued") is not None:
        return (yield)
    from ropewalk.client.handle import on_never_awaited

    messages: list[str] = []
    with on_never_awaited(messages.append):
        outcome = yield
    if messages:
        pytest.fail("\n".join(messages), pytrace=False)
    return outcome


@pytest.fixture
def ropewalk_clock() -> FakeRuntime:
    """A clock that moves only when told: `await ropewalk_clock.advance(hours=3)`."""
    from ropewalk.testing.clock import FakeRuntime

    return FakeRuntime()


@pytest.fixture
def rehearse(ropewalk_clock: FakeRuntime) -> Callable[[App], Rehearsal]:
    """`rehearse(app)`: the app's types, options and lifespan on an in-memory store with the fake clock."""
    from ropewalk.testing.rehearsal import Rehearsal

    return lambda app: Rehearsal(app, clock=ropewalk_clock)
