"""Settings every test shares, and how tests are shared out where they run side by side."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Generator, Iterator
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests.budget import BUDGET, EXAMPLES

# A busy machine makes a slow example, not a wrong one: time is bounded per test (pytest-timeout), not per example.
settings.register_profile(
    "ropewalk", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("ropewalk")

pytest_plugins = ["tests.servers.fixtures", "tests.backends.postgres.backend", "tests.apps", "tests.tables"]


INHERITED_BY_CHILDREN = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that nohup, or a shell that starts a command in the background, makes its children ignore."""


def pytest_configure() -> None:
    """Programs that tests start react to signals as usual, even where this process was started to ignore some.

    A process passes on to the programs it starts which signals it ignores, but not which ones it handles. So a signal
    that is ignored gets a handler that does nothing: this process still survives it, and its children do not.
    """
    for number in INHERITED_BY_CHILDREN:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, _do_nothing)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector leaves the collected tests alone, which are half a million objects that stay.

    To examine them again and again took a quarter of the time of collecting, and a fifth of that of tests in memory.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each core: tests wait for more than half of their time, for processes, servers and clocks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass


STORE_THREADS = ("ropewalk-sqlite", "ropewalk-postgres")
"""Threads with these names belong to stores, and end when their store is closed."""
ENDS_WITHIN_SECONDS = 5.0


@pytest.fixture(autouse=True)
def every_store_is_closed() -> Iterator[None]:
    """A store that a test leaves open fails this test, not one that comes later in the same process."""
    before = set(threading.enumerate())
    yield
    left = [each for each in set(threading.enumerate()) - before if each.name.startswith(STORE_THREADS)]
    for thread in left:
        thread.join(ENDS_WITHIN_SECONDS)
    still_there = sorted(thread.name for thread in left if thread.is_alive())
    assert not still_there, f"the test left a store open, close it: {still_there}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A larger budget tortures more often, at other moments each time."""
    if BUDGET > 1 and metafunc.definition.get_closest_marker("torture") is not None:
        metafunc.fixturenames.append("time_of_budget")
        metafunc.parametrize("time_of_budget", range(BUDGET))


@pytest.hookimpl(tryfirst=True)  # after the shuffle, and before groups are read from the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fleets take the machine one at a time, so they share a group, unless they name another one; what takes long
    begins early, not last.
    """
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(
                f"{item.nodeid}: an address in a test's name differs in every process; see tests/naming.py"
            )
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)
    for item in items:
        if item.get_closest_marker("torture") is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("torture"))
        if BUDGET > 1:
            item.add_marker(pytest.mark.timeout(0), append=False)  # a larger budget takes the time it takes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Half a surrogate pair, which some tests log, goes through no pipe to the process that reports."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report
