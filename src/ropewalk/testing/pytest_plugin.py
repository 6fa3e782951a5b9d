"""The pytest plugin: a test that calls `enqueue` without awaiting it fails, and there are two fixtures.

The fixture `ropewalk_clock` is a fake clock, and `rehearse(app)` returns an in-memory double of an app on that clock.
Mark a test with `@pytest.mark.allow_never_enqueued` if it leaves out such an `await` on purpose.
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
    """Register the markers."""
    config.addinivalue_line("markers", "allow_never_enqueued: this test calls enqueue without awaiting it on purpose")
    config.addinivalue_line(
        "markers", "ropewalk_needs(*capabilities): the contract suite runs this case for stores with these"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail the test if an enqueue in it was never awaited."""
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
    """Return a clock that moves only when the test says so: `await ropewalk_clock.advance(hours=3)`."""
    from ropewalk.testing.clock import FakeRuntime

    return FakeRuntime()


@pytest.fixture
def rehearse(ropewalk_clock: FakeRuntime) -> Callable[[App], Rehearsal]:
    """Return the function `rehearse(app)`, which makes a Rehearsal of the app on the clock of `ropewalk_clock`."""
    from ropewalk.testing.rehearsal import Rehearsal

    return lambda app: Rehearsal(app, clock=ropewalk_clock)
