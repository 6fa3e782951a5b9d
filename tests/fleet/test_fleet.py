"""The supervisor's decisions, with members that are no processes and a clock that is driven by hand."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from ropewalk.fleet.fleet import HURRIED_SECONDS, Fleet, Member
from ropewalk.fleet.parent_link import Announcement
from ropewalk.testing import FakeRuntime

GRACE_SECONDS = 30.0
OVERTIME_SECONDS = 6.0
DRAIN_SECONDS = GRACE_SECONDS + OVERTIME_SECONDS


class Puppet(Member):
    """Starts and ends when the test says so."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.heard: list[signal.Signals] = []
        self._pid = pid
        self._announcement: asyncio.Future[Announcement | None] = asyncio.Future()
        self._code: asyncio.Future[int] = asyncio.Future()

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def refusal(self) -> str | None:
        return None

    async def announced(self) -> Announcement | None:
        return await self._announcement

    async def ended(self) -> int:
        return await self._code

    def send(self, told: signal.Signals) -> None:
        self.heard.append(told)
        if told is signal.SIGKILL:
            self.end(-signal.SIGKILL)

    @property
    def is_over(self) -> bool:
        return self._code.done()

    def begin(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        said = Announcement(
            worker=f"id-{self.pid}",
            store="s",
            durability="d",
            types=["t"],
            concurrency=1,
            grace_seconds=grace_seconds,
        )
        self._announcement.set_result(said)

    def end(self, code: int) -> None:
        if not self._announcement.done():
            self._announcement.set_result(None)
        self._code.set_result(code)


class Stage:
    def __init__(self, size: int) -> None:
        self.runtime = FakeRuntime()
        self.members: list[Puppet] = []
        self.banners: list[list[str]] = []
        self.fails_to_start = False
        self.fleet = Fleet(
            size,
            self._start,
            self.runtime,
            grace_seconds=GRACE_SECONDS,
            overtime_seconds=OVERTIME_SECONDS,
            on_complete=self._complete,
        )
        self.running = asyncio.ensure_future(self.fleet.run())

    async def _start(self, name: str) -> Member:
        if self.fails_to_start:
            raise OSError("no process to give")
        self.members.append(Puppet(name, pid=len(self.members) + 1))
        return self.members[-1]

    def _complete(self, announcements: Sequence[Announcement]) -> None:
        self.banners.append([each.worker for each in announcements])

    async def complete(self) -> Stage:
        await self.runtime.settle()
        self.members[0].begin()
        await self.runtime.settle()
        for member in self.members[1:]:
            member.begin()
        await self.runtime.settle()
        return self

    async def code(self) -> int:
        await self.runtime.settle()
        assert self.running.done(), "it has come to an end"
        return self.running.result()


SetStage = Callable[[int], Awaitable[Stage]]


@pytest.fixture
async def stage() -> AsyncIterator[SetStage]:
    stages: list[Stage] = []

    async def make(size: int) -> Stage:
        stages.append(Stage(size))
        await stages[-1].runtime.settle()
        return stages[-1]

    yield make
    for each in stages:
        each.running.cancel()
        await asyncio.wait([each.running])


async def test_the_first_goes_ahead_and_all_are_shown_together(stage: SetStage) -> None:
    made = await stage(3)
    assert [member.name for member in made.members] == ["worker-1"]
    made.members[0].begin()
    await made.runtime.settle()
    assert [member.name for member in made.members] == ["worker-1", "worker-2", "worker-3"]
    made.members[2].begin()
    await made.runtime.settle()
    assert made.banners == []
    made.members[1].begin()
    await made.runtime.settle()
    assert made.banners == [["id-1", "id-2", "id-3"]]


async def test_one_that_dies_is_replaced_after_a_pause(stage: SetStage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = await (await stage(2)).complete()
    made.members[1].end(-signal.SIGKILL)
    await made.runtime.advance(0.9)
    assert len(made.members) == 2
    await made.runtime.advance(0.1)
    assert made.members[2].name == "worker-2"
    made.members[2].begin()
    await made.runtime.settle()
    assert made.banners == [["id-1", "id-2"]]
    assert caplog.messages == [
        "worker-2 (pid 2) was killed by SIGKILL (out of memory?): another starts in 1 s",
        "worker-2 is id-3 now (pid 3)",
    ]


async def test_one_that_keeps_dying_beside_one_that_works(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    for pause in (1, 2, 4, 8, 16, 30, 30, 30):
        before = len(made.members)
        made.members[-1].end(1)
        await made.runtime.advance(pause - 0.1)
        assert len(made.members) == before
        await made.runtime.advance(0.1)
        assert len(made.members) == before + 1
    assert not made.running.done()


async def test_its_pause_is_short_again_after_a_minute_of_health(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    for _ in range(2):
        made.members[-1].end(1)
        await made.runtime.advance(2)
        made.members[-1].begin()
    await made.runtime.advance(60)
    made.members[-1].end(1)
    await made.runtime.advance(1)
    assert len(made.members) == 5


async def test_an_end_that_nobody_asked_for_is_replaced_too(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    made.members[0].end(0)
    await made.runtime.advance(1)
    assert made.members[2].name == "worker-1"


async def test_wrong_usage_ends_it_at_once(stage: SetStage) -> None:
    made = await stage(3)
    made.members[0].end(2)
    assert await made.code() == 2
    assert len(made.members) == 1


async def test_wrong_usage_later_drains_the_others(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    made.members[1].end(2)
    await made.runtime.settle()
    assert made.members[0].heard == [signal.SIGTERM]
    made.members[0].end(0)
    assert await made.code() == 2


@pytest.mark.parametrize(("code", "expected"), [(3, 3), (1, 1), (0, 1), (-signal.SIGSEGV, 1)])
async def test_hope_is_lost_when_all_keep_failing(
    code: int, expected: int, stage: SetStage, caplog: pytest.LogCaptureFixture
) -> None:
    made = await (await stage(2)).complete()
    await fail_again_and_again(made, code, seconds=70)
    assert await made.code() == expected
    assert "giving up, for 60 s no worker held out" in caplog.messages[-1]


async def test_a_fleet_that_has_worked_waits_for_its_store(stage: SetStage) -> None:
    """Members that are replaced while the store is away cannot start, however long that takes."""
    made = await (await stage(2)).complete()
    await made.runtime.advance(120)
    await fail_again_and_again(made, 3, seconds=300)
    assert not made.running.done()
    await fail_again_and_again(made, 1, seconds=25)
    assert not made.running.done(), "the minute counts from when the store was last away"
    await fail_again_and_again(made, 1, seconds=100)
    assert await made.code() == 1


async def test_the_minute_counts_from_the_first_failure(stage: SetStage) -> None:
    """The first member may take long to start, and fail: it is tried again."""
    made = await stage(2)
    await made.runtime.advance(90)
    made.members[0].end(1)
    await made.runtime.advance(1)
    assert not made.running.done()
    assert len(made.members) == 2
    await fail_again_and_again(made, 1, seconds=100)
    assert await made.code() == 1


async def test_one_that_never_gives_up(stage: SetStage) -> None:
    """Inside somebody else's program: neither wrong usage nor an hour of failures ends it."""
    made = await (await stage(2)).complete()
    made.fleet.gives_up = False
    for code in (1, 2):
        await fail_again_and_again(made, code, seconds=300)
        assert not made.running.done()


async def test_time_spent_on_starting_is_no_health(stage: SetStage, caplog: pytest.LogCaptureFixture) -> None:
    """A member may wait a minute for a store that does not answer: the pauses grow all the same."""
    made = await (await stage(2)).complete()
    await made.runtime.advance(60)
    for pause in (1, 2, 4):
        made.members[-1].end(3)
        await made.runtime.advance(pause)
        assert f"another starts in {pause:g} s" in caplog.messages[-1]
        await made.runtime.advance(60)


async def fail_again_and_again(made: Stage, code: int, *, seconds: int) -> None:
    """Every member ends with this code within a second of its start."""
    for _ in range(seconds):
        if made.running.done():
            return
        for member in made.members:
            if not member.is_over:
                member.end(code)
        await made.runtime.advance(1)


async def test_what_cannot_be_started_is_tried_again(stage: SetStage, caplog: pytest.LogCaptureFixture) -> None:
    made = await (await stage(2)).complete()
    made.fails_to_start = True
    made.members[1].end(1)
    await made.runtime.advance(1)
    made.fails_to_start = False
    await made.runtime.advance(2)
    assert "worker-2 could not be started (no process to give): another starts in 2 s" in caplog.messages
    assert len(made.members) == 3


@pytest.mark.parametrize(
    ("codes", "worst"),
    [((0, 0, 0), 0), ((0, 1, 0), 1), ((3, 1, 0), 3), ((0, 0, -signal.SIGKILL), 1), ((0, 130, -signal.SIGINT), 0)],
)
async def test_one_drain_for_all_and_the_worst_of_their_codes(
    codes: tuple[int, ...], worst: int, stage: SetStage
) -> None:
    made = await (await stage(3)).complete()
    made.fleet.stop()
    await made.runtime.settle()
    assert [member.heard for member in made.members] == [[signal.SIGTERM]] * 3
    for member, code in zip(made.members, codes, strict=True):
        member.end(code)
    assert await made.code() == worst
    assert len(made.members) == 3


async def test_asked_again_it_does_not_wait(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    for _ in range(3):
        made.fleet.stop()
    assert [member.heard for member in made.members] == [[signal.SIGTERM, signal.SIGINT]] * 2
    await made.runtime.advance(HURRIED_SECONDS)
    assert await made.code() == 1
    assert made.members[0].heard[-1] is signal.SIGKILL


async def test_one_that_does_not_end_is_killed(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    made.fleet.stop()
    made.members[0].end(0)
    await made.runtime.advance(DRAIN_SECONDS - 0.1)
    assert made.members[1].heard == [signal.SIGTERM]
    await made.runtime.advance(0.1)
    assert made.members[1].heard == [signal.SIGTERM, signal.SIGKILL]
    assert await made.code() == 1


@pytest.mark.parametrize("grace_seconds", [1.0, 300.0])
async def test_a_member_says_itself_how_long_it_drains(grace_seconds: float, stage: SetStage) -> None:
    """Its code may have set it: the supervisor reads none."""
    made = await stage(1)
    [member] = made.members
    member.begin(grace_seconds=grace_seconds)
    await made.runtime.settle()
    made.fleet.stop()
    await made.runtime.advance(grace_seconds + OVERTIME_SECONDS - 0.1)
    assert member.heard == [signal.SIGTERM]
    await made.runtime.advance(0.1)
    assert member.heard == [signal.SIGTERM, signal.SIGKILL]


async def test_one_that_never_said_is_killed_too(stage: SetStage) -> None:
    made = await stage(1)
    made.fleet.stop()
    await made.runtime.advance(DRAIN_SECONDS - 0.1)
    assert made.members[0].heard == [signal.SIGTERM]
    await made.runtime.advance(0.1)
    assert made.members[0].heard == [signal.SIGTERM, signal.SIGKILL]


async def test_stopped_before_all_have_started(stage: SetStage) -> None:
    made = await stage(3)
    made.fleet.stop()
    made.members[0].end(-signal.SIGTERM)
    assert await made.code() == 0
    assert len(made.members) == 1


async def test_stopped_while_one_is_to_be_replaced(stage: SetStage) -> None:
    made = await (await stage(2)).complete()
    made.members[0].end(1)
    await made.runtime.settle()
    made.fleet.stop()
    made.members[1].end(0)
    assert await made.code() == 0
    assert len(made.members) == 2
