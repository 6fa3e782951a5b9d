"""Rules about the connection between this process and its store: their clocks, and the wake-ups through the store."""

from __future__ import annotations

from typing import Final

from ropewalk.domain.time import SECOND, Span
from ropewalk.observe.doctor.facts import ClockReading
from ropewalk.ports.store.findings import Finding, lasting, note, ok, warn

CLOCK_NOTED: Final[Span] = SECOND
CLOCK_WRONG: Final[Span] = 10 * SECOND
HINT_SLOW: Final[Span] = SECOND
"""Workers look for jobs once a second, so a hint that takes longer than this is of no use."""
LOST_HINT_ADVICE: Final = (
    "check that the files beside the database can be written, and that no firewall cuts idle connections"
)


def clock(reading: ClockReading) -> list[Finding]:
    """Compares the store's clock with this machine's. The store's clock decides, so a wrong clock here delays nothing;
    but people take the times that they give from this machine."""
    off = max(0, abs(reading.ahead_us) - reading.uncertain_us)
    side = "ahead of" if reading.ahead_us > 0 else "behind"
    if off < CLOCK_NOTED:
        return [ok("clock", f"the store's and this machine's agree within {_ms(abs(reading.ahead_us))}")]
    found = f"the store's clock is {lasting(abs(reading.ahead_us))} {side} this machine's"
    advice = "let both keep time by NTP: `run_at=`, deadlines and schedules mean the store's clock"
    return [warn("clock", found, advice) if off >= CLOCK_WRONG else note("clock", found, advice)]


def wake_ups(hint_us: Span | None, lost_hint_advice: str | None) -> list[Finding]:
    """Judges how long a hint took to reach another store on the same data; None if it did not arrive."""
    if hint_us is None:
        return [
            note(
                "wake-ups",
                "a hint did not arrive: workers find work by looking, once a second",
                lost_hint_advice or LOST_HINT_ADVICE,
            )
        ]
    if hint_us >= HINT_SLOW:
        return [
            note(
                "wake-ups",
                f"a hint took {lasting(hint_us)} to arrive: no faster than looking",
                "look for what keeps this machine or the server busy",
            )
        ]
    return [ok("wake-ups", f"a hint arrives after {_ms(hint_us)}")]


def _ms(span: Span) -> str:
    return f"{span / 1000:.1f} ms"
