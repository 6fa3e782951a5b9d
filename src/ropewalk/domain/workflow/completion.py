"""What an attempt leaves behind it: the work that follows a completion, or where a suspended one goes on."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.group_value import Contribution

StepKind: TypeAlias = Literal["step", "sleep", "signal"]


class Sequel(Struct, frozen=True, kw_only=True):
    """Written in the transaction that completes the job, or not at all."""

    children: tuple[NewJob, ...] = ()
    """members of the completed job's scope; gates among them name one another by id"""
    continuation: NewJob | None = None
    contribution: Contribution | None = None


class StepRecord(Struct, frozen=True, kw_only=True):
    """A durable step of a job, by its place in the handler. Finished unless it only says when a wait is over."""

    position: int
    name: str
    kind: StepKind
    value: bytes | None = None
    until: Instant | None = None
    """when a sleep is over, or a wait for a signal is given up"""
    finished: bool = True


class Suspension(Struct, frozen=True, kw_only=True):
    """The handler sleeps or waits for a signal: it gives its slot back and runs again from the top."""

    position: int
    name: str
    """of the step that waits"""
    signal: str | None = None
    """None: it sleeps"""
    span_us: Span | None = None
    """how long from now; None waits for the signal without an end"""
    until: Instant | None = None
    """absolute, where an earlier suspension already set it; wins over span_us"""

    def until_at(self, now: Instant) -> Instant | None:
        if self.until is not None or self.span_us is None:
            return self.until
        return now + self.span_us

    def step_at(self, now: Instant) -> StepRecord:
        kind: StepKind = "sleep" if self.signal is None else "signal"
        return StepRecord(position=self.position, name=self.name, kind=kind, until=self.until_at(now), finished=False)
