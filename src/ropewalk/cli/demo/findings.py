"""What the demo saw, for its promises to be checked against.

What happened to a job, as a sentence. Pure: made of the job and one entry of its history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.client.views.jobs import HistoryInfo, JobInfo
from ropewalk.errors import RopewalkError


@dataclass(slots=True)
class Findings:
    """Workers are named by their ids."""

    enqueued: list[str] = field(default_factory=list)
    """job ids"""
    jobs: list[JobInfo] = field(default_factory=list)
    workers: dict[str, int] = field(default_factory=dict)
    """worker → pid"""
    killed: str = ""
    killed_at_percent: float = 0.0
    frozen: str = ""
    late_writes_refused: int = 0
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    """worker → how its process ended"""


class DemoFailed(RopewalkError):
    """Something without which the demo cannot go on did not happen."""


Tone: TypeAlias = Literal["plain", "good", "bad", "note"]


class Sentence(Struct, frozen=True):
    text: str
    tone: Tone = "plain"


def sentence(job: JobInfo, entry: HistoryInfo) -> Sentence | None:
    """None for what goes without saying."""
    match entry.kind:
        case "queued" if job.parent_id is not None:
            return Sentence(f"{name(job)} queued in the same transaction: it undoes what charge_card did", "note")
        case "started" if entry.attempt is not None and entry.attempt > 1:
            where = "" if entry.worker is None else f" on worker {short(entry.worker)}"
            resumed = f", resumed from checkpoint {percent(job):.0f} %" if percent(job) else ""
            return Sentence(f"{name(job)}: attempt {entry.attempt}{where}{resumed}")
        case "retry":
            wait = (job.scheduled_for - entry.at).total_seconds()
            return Sentence(
                f"{name(job)}: attempt {entry.attempt} failed ({_error(entry)}), tries again in {wait:.1f} s", "note"
            )
        case "fail" | "bury":
            return Sentence(f"{name(job)} failed for good ({_error(entry)})", "bad")
        case "lose":
            return Sentence(f"{name(job)} taken back from worker {short(entry.worker)}", "note")
        case "complete":
            return Sentence(f"{name(job)} done", "good")
        case _:
            return None


def name(job: JobInfo) -> str:
    """The type and what it is about: `encode_video holiday.mp4`."""
    subject = next(iter((job.arguments or {}).values()), "")
    return f"{job.type} {subject}".rstrip()


def short(worker: str | None) -> str:
    return "?" if worker is None else worker[:4]


def percent(job: JobInfo) -> float:
    return 0.0 if job.progress is None else job.progress.percent


def _error(entry: HistoryInfo) -> str:
    if entry.error is None:
        return "no error recorded"
    return f"{entry.error.type}: {entry.error.message}"
