"""O1: whoever listens hears everything, alone or beside others; a hook may be a coroutine, and may raise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ropewalk import Event
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.states import Move
from ropewalk.observe.events import EventHook, EventHub
from ropewalk.observe.publish import Change
from ropewalk.runtime.system import SystemRuntime
from tests.domain.records import NOW, a_job

ONE = a_job(type="one")
TWO = a_job(type="two")

ALL = ["started", "succeeded", "failed", "lease_lost"]


def hub_of(on_event: EventHook | None, reported: list[str] | None = None) -> EventHub:
    def report(error: BaseException, phase: str) -> None:
        assert reported is not None, error
        reported.append(f"{phase}: {error}")

    return EventHub(SystemRuntime(), on_event=on_event, on_error=report)


def everything(hub: EventHub) -> None:
    """Of two types, each way there is: at once, and after a commit."""
    for job in (ONE, TWO):
        hub.emit_about(job, "started")
    hub.emit_changes([Change(job, move, None) for job in (ONE, TWO) for move in (Move.COMPLETE, Move.RETRY)], NOW)
    for job in (ONE, TWO):
        hub.emit_about(job, "lease_lost", message="gone")


def kinds(heard: list[Event], job_type: str) -> list[str]:
    return [event.kind for event in heard if event.type == job_type]


def test_a_hook_alone_hears_everything() -> None:
    heard: list[Event] = []
    everything(hub_of(heard.append))
    assert kinds(heard, "one") == kinds(heard, "two") == ALL
    assert [event.message for event in heard] == [None] * 6 + ["gone"] * 2


def test_a_hook_of_a_type_hears_of_that_type() -> None:
    """With nobody beside it, and joining one who was alone until then."""
    of_type: list[Event] = []
    hub = hub_of(None)
    hub.hook_type("two", of_type.append)
    everything(hub)
    assert (kinds(of_type, "one"), kinds(of_type, "two")) == ([], ALL)

    of_all: list[Event] = []
    of_type.clear()
    hub = hub_of(of_all.append)
    hub.hook_type("two", of_type.append)
    everything(hub)
    assert kinds(of_all, "one") == kinds(of_all, "two") == kinds(of_type, "two") == ALL
    assert kinds(of_type, "one") == []


async def test_a_stream_joins_a_hook_and_leaves_it() -> None:
    of_hook: list[Event] = []
    hub = hub_of(of_hook.append)
    stream = hub.stream()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)  # a generator begins when it is asked for something
    everything(hub)
    async with asyncio.timeout(10):
        streamed = [await first, *[await anext(stream) for _ in range(7)]]
    assert streamed == of_hook and kinds(of_hook, "one") == ALL
    await stream.aclose()
    everything(hub)
    assert kinds(of_hook, "one") == ALL * 2


def alone(_: EventHub) -> None: ...


def beside_another(hub: EventHub) -> None:
    hub.hook_type("one", lambda _: None)


@pytest.mark.parametrize("company", [alone, beside_another])
async def test_a_hook_may_be_a_coroutine(company: Callable[[EventHub], None]) -> None:
    """It is finished on the loop, and what it raises is reported."""
    heard: list[Event] = []
    reported: list[str] = []
    done = asyncio.Event()

    async def hook(event: Event) -> None:
        heard.append(event)
        if len(heard) == 8:
            done.set()
        raise RuntimeError(event.kind)

    hub = hub_of(hook, reported)
    company(hub)
    everything(hub)
    assert heard == []
    async with asyncio.timeout(10):
        await done.wait()
        while len(reported) < 8:
            await asyncio.sleep(0)
    assert kinds(heard, "one") == kinds(heard, "two") == ALL
    assert sorted(reported) == sorted(f"on_event: {kind}" for kind in ALL * 2)


@pytest.mark.parametrize("company", [alone, beside_another])
def test_a_hook_that_raises_is_told_of_the_next(company: Callable[[EventHub], None]) -> None:
    reported: list[str] = []

    def hook(event: Event) -> None:
        raise RuntimeError(event.kind)

    hub = hub_of(hook, reported)
    company(hub)
    everything(hub)
    assert sorted(reported) == sorted(f"on_event: {kind}" for kind in ALL * 2)


@pytest.mark.parametrize(
    ("category", "told"),
    [
        (Category.TEMPORARY, [("failed", False), ("dead_lettered", None)]),
        (Category.TIMEOUT, [("failed", False), ("dead_lettered", None)]),
        (Category.WORKER_LOST, [("reclaimed", None), ("dead_lettered", None)]),
    ],
)
def test_a_dead_letter_says_first_how_its_last_attempt_ended(
    category: Category, told: list[tuple[str, bool | None]]
) -> None:
    heard: list[Event] = []
    hub_of(heard.append).emit_changes([Change(ONE, Move.BURY, ErrorInfo(category=category, message="last words"))], NOW)
    assert [(event.kind, event.will_retry) for event in heard] == told
    assert [event.error.message for event in heard if event.error is not None] == ["last words"] * 2


def test_who_raises_does_not_keep_it_from_others() -> None:
    heard: list[Event] = []
    reported: list[str] = []

    def hook(_: Event) -> None:
        raise RuntimeError("broken")

    hub = hub_of(hook, reported)
    hub.hook_type("one", heard.append)
    everything(hub)
    assert kinds(heard, "one") == ALL and reported == ["on_event: broken"] * 8
