"""The supervisor of a fleet: it starts several workers, replaces those that die, and drains them together.

The supervisor does not know how processes are made. It looks after objects with the protocol `Member`, and gets the
function that starts one. This module also decides how long to wait before a worker that died is replaced, and when to
give up.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from ropewalk.domain.growing_pause import GrowingPause
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.parent_link import Announcement
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.runners.handler_process import exit_in_words

PAUSE_SECONDS: Final = 1.0
"""The first pause before a worker that died is replaced; each further pause is longer."""
PAUSE_SECONDS_MAX: Final = 30.0
"""The longest pause before a worker that died is replaced."""
HEALTHY_SECONDS: Final = 60.0
"""Uptime after which the pauses before a replacement start over."""
WORKING_SECONDS: Final = 5.0
"""Uptime after which a worker counts as able to work."""
HOPELESS_SECONDS: Final = 60.0
"""How long the workers of a fleet may keep failing before the fleet gives up."""


def pause_before_restart() -> GrowingPause:
    """Return the growing pauses before one position of the fleet is filled again."""
    return GrowingPause(PAUSE_SECONDS, PAUSE_SECONDS_MAX, healthy_seconds=HEALTHY_SECONDS)


class FleetHealth:
    """The health of a fleet: it is lost if its workers kept failing for a minute and none was able to work meanwhile.

    The minute counts from the first failure, so a first worker that takes long to start may fail and be replaced. A
    fleet that has worked before is not lost while its store is unavailable, because the store will come back.
    """

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._has_worked = False

    def served(self, since: float | None, now: float) -> None:
        """Note that a member serves, or served until now, since this moment; None means that it has not started yet."""
        if since is not None and now - since >= WORKING_SECONDS:
            self._failing_since = None
            self._has_worked = True

    def failed(self, now: float, *, store_away: bool) -> None:
        """Note that a member ended without being asked to, or could not be started."""
        if store_away and self._has_worked:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now

    def lost(self, now: float) -> bool:
        """Return whether the fleet should give up."""
        return self._failing_since is not None and now - self._failing_since >= HOPELESS_SECONDS


HURRIED_SECONDS: Final = 6.0
"""How long a member may take to end after it was told not to wait for its handlers."""

logger = logging.getLogger("ropewalk.worker")


class Member(Protocol):
    """A member is one process of the fleet, which runs one worker."""

    @property
    def pid(self) -> int:
        """The id of the process."""
        ...

    @property
    def refusal(self) -> str | None:
        """The reason that the process gave for not starting a worker, or None."""
        ...

    async def announced(self) -> Announcement | None:
        """Wait until the worker has started and return what it announces, or None if the process ended instead."""

    async def ended(self) -> int:
        """Wait for the end of the process and return its exit code; minus N means that signal N killed it."""
        ...

    def send(self, which: signal.Signals) -> None:
        """Send the process a signal; if it has ended, nothing happens."""


Start: TypeAlias = Callable[[str], Awaitable[Member]]
"""A function that starts a member with this name. It raises OSError if the system refuses another process."""


class Position:
    """A position of the fleet is filled by one member, and by another one after that member has died."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_start = asyncio.Event()
        """An event that is set when a member may be started in this position."""
        self.pause = pause_before_restart()
        self.member: Member | None = None
        self.announcement: Announcement | None = None
        """What the worker of the present member announced, or None if it has not started yet."""
        self.serves_since: float | None = None
        """The monotonic time at which that worker started."""


class Fleet:
    """A fleet keeps a number of positions filled with members until it is stopped."""

    def __init__(
        self,
        size: int,
        start: Start,
        runtime: Runtime,
        *,
        grace_seconds: float,
        overtime_seconds: float,
        on_complete: Callable[[Sequence[Announcement]], object],
    ) -> None:
        """Make a fleet with `size` positions; `on_complete` is called when all of them serve for the first time.

        `grace_seconds` is how long a member may drain, unless it announces another number that its code sets. A member
        that has not ended `overtime_seconds` after that is killed.
        """
        self._positions = [Position(f"worker-{number}") for number in range(1, size + 1)]
        self._start = start
        self._runtime = runtime
        self._grace_seconds = grace_seconds
        self._overtime_seconds = overtime_seconds
        self._on_complete = on_complete
        self._complete = False
        self._stopping = False
        self._hurried = False
        self._timers: list[Timer] = []
        self._health = FleetHealth()
        self.gives_up = True
        """Whether the fleet ends when none of its members is able to work; otherwise it replaces them for ever."""
        self.refusal: str | None = None
        """The reason of the last member that could not start a worker."""
        self.gave_up = False
        """Whether the fleet ended because none of its members was able to work."""
        self._worst = ExitCode.OK.value

    async def run(self) -> int:
        """Fill all positions until the fleet is stopped and its last member has ended; return the worst exit code."""
        # One member starts before the others, so that wrong settings are reported once and one member sets a store up.
        self._positions[0].may_start.set()
        try:
            await asyncio.gather(*(self._fill(position) for position in self._positions))
        finally:
            for timer in self._timers:
                timer.cancel()
        return self._worst

    @property
    def announcements(self) -> list[Announcement]:
        """The announcements of the members that serve now."""
        return [each.announcement for each in self._positions if each.announcement is not None]

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called, or the fleet has given up."""
        return self._stopping

    def stop(self) -> None:
        """Drain all members; a second call ends them without waiting for their handlers."""
        if not self._stopping:
            logger.info("draining: every worker was asked to stop, and none is replaced")
            self._begin_to_stop()
        elif not self._hurried:
            self._hurried = True
            self._tell(signal.SIGINT)
            self._kill_in(HURRIED_SECONDS)

    def _begin_to_stop(self) -> None:
        self._stopping = True
        self._tell(signal.SIGTERM)
        graces = [each.grace_seconds for each in self.announcements]
        self._kill_in(max(graces, default=self._grace_seconds) + self._overtime_seconds)
        for position in self._positions:
            position.may_start.set()

    def _tell(self, which: signal.Signals) -> None:
        for position in self._positions:
            if position.member is not None:
                position.member.send(which)

    def _kill_in(self, seconds: float) -> None:
        self._timers.append(self._runtime.after(seconds, lambda: self._tell(signal.SIGKILL)))

    # ── one position ───────────────────────────────────────────────────────────────────────────────────────────

    async def _fill(self, position: Position) -> None:
        await position.may_start.wait()
        while not self._stopping:
            try:
                member = await self._start(position.name)
            except OSError as error:
                await self._replace(position, ExitCode.FAILED, f"could not be started ({error})")
                continue
            code = await self._live(position, member)
            if self._stopping:
                position.announcement = None
                self._worst = max(self._worst, _exit_code(code))
                return
            why = ""
            if member.refusal is not None:
                self.refusal, why = member.refusal, f": {member.refusal}"
            await self._replace(position, code, f"(pid {member.pid}) {exit_in_words(code)}{why}")

    async def _live(self, position: Position, member: Member) -> int:
        position.member, position.announcement, position.serves_since = member, None, None
        if self._stopping:
            member.send(signal.SIGTERM)
        announcement = await member.announced()
        if announcement is not None:
            position.announcement, position.serves_since = announcement, self._runtime.monotonic()
            self._note_started(position, member)
        code = await member.ended()
        position.member = None
        return code

    def _note_started(self, position: Position, member: Member) -> None:
        assert position.announcement is not None
        if self._complete:
            logger.info("%s is %s now (pid %d)", position.name, position.announcement.worker, member.pid)
            return
        if position is self._positions[0]:
            for other in self._positions:
                other.may_start.set()
        announcements = self.announcements
        if len(announcements) == len(self._positions):
            self._complete = True
            self._on_complete(announcements)

    async def _replace(self, position: Position, code: int, how: str) -> None:
        now = self._runtime.monotonic()
        for each in self._positions:
            self._health.served(each.serves_since, now)
        self._health.failed(now, store_away=code == ExitCode.STORE)
        # The time before the worker started does not count: a member may wait long for a store and then end.
        served_seconds = 0.0 if position.serves_since is None else now - position.serves_since
        position.announcement, position.serves_since = None, None
        if code == ExitCode.USAGE and self.gives_up:
            self._give_up(code)  # the member has reported what is wrong
            return
        if self._health.lost(now) and self.gives_up:
            logger.error("%s %s: giving up, for %g s no worker held out", position.name, how, HOPELESS_SECONDS)
            self._give_up(max(_exit_code(code), ExitCode.FAILED))
            return
        pause = position.pause.after(served_seconds)
        logger.warning("%s %s: another starts in %g s", position.name, how, pause)
        position.may_start.clear()
        timer = self._runtime.after(pause, position.may_start.set)
        await position.may_start.wait()
        timer.cancel()

    def _give_up(self, code: int) -> None:
        self.gave_up = True
        self._worst = max(self._worst, code)
        if not self._stopping:
            self._begin_to_stop()


def _exit_code(code: int) -> int:
    """Return the exit code that a member stands for after it was asked to end.

    A stop signal kills a member only before it serves or after it has drained, when it holds no jobs: that is success.
    """
    if code in (ExitCode.INTERRUPTED, -signal.SIGTERM, -signal.SIGINT):
        return ExitCode.OK
    return ExitCode.FAILED if code < 0 else code
