"""Several workers under one supervisor: started, replaced when they die, drained as one.

Knows no process: what it supervises is a `Member`, and who starts one is given.

How long to wait before a worker that died is replaced, and when to stop hoping. Told the time, it reads none.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from ropewalk.cli.errors import ExitCode
from ropewalk.cli.worker.parent_link import Announcement
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.runners.handler_process import ending

PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 30.0
HEALTHY_SECONDS: Final = 60.0
"""Time of service after which the pauses before a replacement start over."""
WORKING_SECONDS: Final = 5.0
"""who served that long was able to work"""
HOPELESS_SECONDS: Final = 60.0


class RestartBackoff:
    """With one place of the fleet: each pause is twice the last, until somebody holds out there."""

    def __init__(self) -> None:
        self._next_seconds = PAUSE_SECONDS

    def pause_after(self, served_seconds: float) -> float:
        if served_seconds >= HEALTHY_SECONDS:
            self._next_seconds = PAUSE_SECONDS
        pause = self._next_seconds
        self._next_seconds = min(2 * pause, PAUSE_SECONDS_MAX)
        return pause


class FleetHealth:
    """How the fleet as a whole is doing: it is lost when for a minute nobody at all was able to work.

    A fleet that has worked before is not lost while its store is away: the store will come back.
    """

    def __init__(self, now: float) -> None:
        self._worked_at = now
        self._has_worked = False

    def served(self, since: float | None, now: float) -> None:
        """Somebody serves now, or did until now; None has not started yet."""
        if since is not None and now - since >= WORKING_SECONDS:
            self._worked_at = now
            self._has_worked = True

    def store_away(self, now: float) -> None:
        """A member ended because it could not use the store."""
        if self._has_worked:
            self._worked_at = now

    def lost(self, now: float) -> bool:
        return now - self._worked_at >= HOPELESS_SECONDS


HURRIED_SECONDS: Final = 6.0
"""what a member may take that was told not to wait: to cancel its handlers and give their jobs back"""

logger = logging.getLogger("ropewalk.worker")


class Member(Protocol):
    @property
    def pid(self) -> int: ...

    async def announced(self) -> Announcement | None:
        """What it says when it has started; None when it ended instead."""

    async def ended(self) -> int:
        """Its exit code, negative for the signal that killed it."""
        ...

    def send(self, told: signal.Signals) -> None:
        """One that is gone hears nothing."""


Start: TypeAlias = Callable[[str], Awaitable[Member]]
"""of a member by that name; raises OSError where the system has no process to give"""


class Place:
    """One of the fleet, whoever holds it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.go = asyncio.Event()
        """it need not wait any longer to start somebody"""
        self.patience = RestartBackoff()
        self.member: Member | None = None
        self.announcement: Announcement | None = None
        self.serves_since: float | None = None


class Fleet:
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
        """`grace_seconds`: what a member has to drain, until it says otherwise: its code may. `overtime_seconds`: after
        that it has ended by itself."""
        self._places = [Place(f"worker-{number}") for number in range(1, size + 1)]
        self._start = start
        self._runtime = runtime
        self._grace_seconds = grace_seconds
        self._overtime_seconds = overtime_seconds
        self._on_complete = on_complete
        self._complete = False
        self._stopping = False
        self._hurried = False
        self._timers: list[Timer] = []
        self._hope = FleetHealth(runtime.monotonic())
        self._worst = ExitCode.OK.value

    async def run(self) -> int:
        """Until the last one has ended. The exit code is the worst of theirs."""
        # The first goes ahead: what is wrong with the command line is said once, and a new store is set up by one.
        self._places[0].go.set()
        try:
            await asyncio.gather(*(self._keep(place) for place in self._places))
        finally:
            for timer in self._timers:
                timer.cancel()
        return self._worst

    def stop(self) -> None:
        """Drain. Asked again: do not wait."""
        if not self._stopping:
            logger.info("draining: every worker was told, none is replaced")
            self._begin_to_stop()
        elif not self._hurried:
            self._hurried = True
            self._tell(signal.SIGINT)
            self._kill_in(HURRIED_SECONDS)

    def _begin_to_stop(self) -> None:
        self._stopping = True
        self._tell(signal.SIGTERM)
        graces = [each.grace_seconds for each in self._announcements()]
        self._kill_in(max(graces, default=self._grace_seconds) + self._overtime_seconds)
        for place in self._places:
            place.go.set()

    def _announcements(self) -> list[Announcement]:
        return [each.announcement for each in self._places if each.announcement is not None]

    def _tell(self, told: signal.Signals) -> None:
        for place in self._places:
            if place.member is not None:
                place.member.send(told)

    def _kill_in(self, seconds: float) -> None:
        self._timers.append(self._runtime.after(seconds, lambda: self._tell(signal.SIGKILL)))

    # ── one place ───────────────────────────────────────────────────────────────────────────────────────────

    async def _keep(self, place: Place) -> None:
        await place.go.wait()
        while not self._stopping:
            try:
                member = await self._start(place.name)
            except OSError as error:
                await self._replace(place, ExitCode.FAILED, f"could not be started ({error})")
                continue
            code = await self._live(place, member)
            if self._stopping:
                self._worst = max(self._worst, _exit_code(code))
                return
            await self._replace(place, code, f"(pid {member.pid}) {ending(code)}")

    async def _live(self, place: Place, member: Member) -> int:
        place.member, place.announcement, place.serves_since = member, None, None
        if self._stopping:
            member.send(signal.SIGTERM)
        announcement = await member.announced()
        if announcement is not None:
            place.announcement, place.serves_since = announcement, self._runtime.monotonic()
            self._welcome(place, member)
        code = await member.ended()
        place.member = None
        return code

    def _welcome(self, place: Place, member: Member) -> None:
        assert place.announcement is not None
        if self._complete:
            logger.info("%s is %s now (pid %d)", place.name, place.announcement.worker, member.pid)
            return
        if place is self._places[0]:
            for other in self._places:
                other.go.set()
        announcements = self._announcements()
        if len(announcements) == len(self._places):
            self._complete = True
            self._on_complete(announcements)

    async def _replace(self, place: Place, code: int, how: str) -> None:
        now = self._runtime.monotonic()
        for each in self._places:
            self._hope.served(each.serves_since, now)
        if code == ExitCode.STORE:
            self._hope.store_away(now)
        # What it took to start is no health: a member may wait long for a store that does not answer, and then end.
        served_seconds = 0.0 if place.serves_since is None else now - place.serves_since
        place.announcement, place.serves_since = None, None
        if code == ExitCode.USAGE:
            self._give_up(code)  # it has said why
            return
        if self._hope.lost(now):
            logger.error("%s %s: giving up, for %g s no worker held out", place.name, how, HOPELESS_SECONDS)
            self._give_up(max(_exit_code(code), ExitCode.FAILED))
            return
        pause = place.patience.pause_after(served_seconds)
        logger.warning("%s %s: another starts in %g s", place.name, how, pause)
        place.go.clear()
        timer = self._runtime.after(pause, place.go.set)
        await place.go.wait()
        timer.cancel()

    def _give_up(self, code: int) -> None:
        self._worst = max(self._worst, code)
        if not self._stopping:
            self._begin_to_stop()


def _exit_code(code: int) -> int:
    """Of one that was told to end. Signals kill it only before it serves or after it drained: it holds nothing then."""
    if code in (ExitCode.INTERRUPTED, -signal.SIGTERM, -signal.SIGINT):
        return ExitCode.OK
    return ExitCode.FAILED if code < 0 else code
