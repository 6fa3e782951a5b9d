"""Several workers under one supervisor: started, replaced when they die, drained as one.

The supervisor knows no process: what it looks after is a `Member`, and the function that starts one is given to it.

This module also says how long to wait before a worker that died is replaced, and when to give up.
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
PAUSE_SECONDS_MAX: Final = 30.0
HEALTHY_SECONDS: Final = 60.0
"""Time of service after which the pauses before a replacement start over."""
WORKING_SECONDS: Final = 5.0
"""A worker that served for so long was able to work."""
HOPELESS_SECONDS: Final = 60.0
"""How long all workers of a fleet keep failing before it gives up."""


def pause_before_restart() -> GrowingPause:
    """The pauses before one place of the fleet is filled again."""
    return GrowingPause(PAUSE_SECONDS, PAUSE_SECONDS_MAX, healthy_seconds=HEALTHY_SECONDS)


class FleetHealth:
    """How the fleet as a whole is doing: it is lost when its workers kept failing for a minute, and none was able to
    work meanwhile.

    The minute counts from the first failure, so a first worker that takes long to start may fail and be replaced. A
    fleet that has worked before is not lost while its store is away: the store will come back.
    """

    def __init__(self) -> None:
        self._failing_since: float | None = None
        self._has_worked = False

    def served(self, since: float | None, now: float) -> None:
        """A member serves now, or did until now; None for one that has not started yet."""
        if since is not None and now - since >= WORKING_SECONDS:
            self._failing_since = None
            self._has_worked = True

    def failed(self, now: float, *, store_away: bool) -> None:
        """A member ended without being asked to, or could not be started."""
        if store_away and self._has_worked:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now

    def lost(self, now: float) -> bool:
        return self._failing_since is not None and now - self._failing_since >= HOPELESS_SECONDS


HURRIED_SECONDS: Final = 6.0
"""How long a member that was told not to wait may take to cancel its handlers and give their jobs back."""

logger = logging.getLogger("ropewalk.worker")


class Member(Protocol):
    """One process of the fleet."""

    @property
    def pid(self) -> int: ...

    @property
    def refusal(self) -> str | None:
        """Why it could not start a worker, where it said so."""
        ...

    async def announced(self) -> Announcement | None:
        """What it says when it has started; None when it ended instead."""

    async def ended(self) -> int:
        """Its exit code, negative for the signal that killed it."""
        ...

    def send(self, told: signal.Signals) -> None:
        """Send it a signal; where the process is gone, nothing happens."""


Start: TypeAlias = Callable[[str], Awaitable[Member]]
"""Starts a member by that name. Raises OSError where the system has no process to give."""


class Place:
    """One of the places of the fleet: a member fills it, and another one after its death."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.go = asyncio.Event()
        """Set when the place need not wait any longer to be filled."""
        self.pause = pause_before_restart()
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
        """`grace_seconds` is how long a member may drain, until it announces another number, because its code may set
        one. `overtime_seconds` after that it has ended by itself, or is killed."""
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
        self._health = FleetHealth()
        self.gives_up = True
        """False replaces members for ever, also when none of them works."""
        self.refusal: str | None = None
        """What the last member said that could not start a worker."""
        self.gave_up = False
        self._worst = ExitCode.OK.value

    async def run(self) -> int:
        """Start the members, and keep replacing them until they are told to stop and the last one has ended. The answer
        is the worst of their exit codes."""
        # The first goes ahead: what is wrong with its settings is said once, and a new store is set up by one.
        self._places[0].go.set()
        try:
            await asyncio.gather(*(self._keep(place) for place in self._places))
        finally:
            for timer in self._timers:
                timer.cancel()
        return self._worst

    @property
    def announcements(self) -> list[Announcement]:
        """What the members say that serve now, one for each place that is filled."""
        return [each.announcement for each in self._places if each.announcement is not None]

    @property
    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        """Let all members drain; called again, let them end without waiting for their handlers."""
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
        graces = [each.grace_seconds for each in self.announcements]
        self._kill_in(max(graces, default=self._grace_seconds) + self._overtime_seconds)
        for place in self._places:
            place.go.set()

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
                place.announcement = None
                self._worst = max(self._worst, _exit_code(code))
                return
            why = ""
            if member.refusal is not None:
                self.refusal, why = member.refusal, f": {member.refusal}"
            await self._replace(place, code, f"(pid {member.pid}) {exit_in_words(code)}{why}")

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
        announcements = self.announcements
        if len(announcements) == len(self._places):
            self._complete = True
            self._on_complete(announcements)

    async def _replace(self, place: Place, code: int, how: str) -> None:
        now = self._runtime.monotonic()
        for each in self._places:
            self._health.served(each.serves_since, now)
        self._health.failed(now, store_away=code == ExitCode.STORE)
        # What it took to start is no health: a member may wait long for a store that does not answer, and then end.
        served_seconds = 0.0 if place.serves_since is None else now - place.serves_since
        place.announcement, place.serves_since = None, None
        if code == ExitCode.USAGE and self.gives_up:
            self._give_up(code)  # it has said why
            return
        if self._health.lost(now) and self.gives_up:
            logger.error("%s %s: giving up, for %g s no worker held out", place.name, how, HOPELESS_SECONDS)
            self._give_up(max(_exit_code(code), ExitCode.FAILED))
            return
        pause = place.pause.after(served_seconds)
        logger.warning("%s %s: another starts in %g s", place.name, how, pause)
        place.go.clear()
        timer = self._runtime.after(pause, place.go.set)
        await place.go.wait()
        timer.cancel()

    def _give_up(self, code: int) -> None:
        self.gave_up = True
        self._worst = max(self._worst, code)
        if not self._stopping:
            self._begin_to_stop()


def _exit_code(code: int) -> int:
    """What the exit code of a member that was told to end means.

    A signal kills it only before it serves or after it has drained: it holds nothing then.
    """
    if code in (ExitCode.INTERRUPTED, -signal.SIGTERM, -signal.SIGINT):
        return ExitCode.OK
    return ExitCode.FAILED if code < 0 else code
