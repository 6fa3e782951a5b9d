"""What the demo has seen, against which its promises are checked, and the sentences in which it reports events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.client.views.jobs import HistoryInfo, JobInfo
from ropewalk.errors import RopewalkError


@dataclass(slots=True)
class Findings:
    """Everything that the demo has seen; workers are named by their ids."""

    enqueued: list[str] = field(default_factory=list)
    """The ids of the jobs that the demo has enqueued."""
    jobs: list[JobInfo] = field(default_factory=list)
    workers: dict[str, int] = field(default_factory=dict)
    """The process id of each worker."""
    killed: str = ""
    killed_at_percent: float = 0.0
    frozen: str = ""
    late_writes_refused: int = 0
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    """The exit code of each worker's process, or None while it runs."""


class DemoFailed(RopewalkError):
    """The demo cannot continue, because something that it waited for did not happen."""


Tone: TypeAlias = Literal["plain", "good", "bad", "note"]


class Sentence(Struct, frozen=True):
    """A sentence that the demo prints, and its tone, which decides the colour."""

    text: str
    tone: Tone = "plain"


def sentence(job: JobInfo, entry: HistoryInfo) -> Sentence | None:
    """Describe one entry of the history of a job, or return None if the entry is not worth a sentence."""
    match entry.kind:
        case "queued" if job.parent_id is not None:
            return Sentence(f"{name(job)} queued in the same transaction, to undo what charge_card did", "note")
        case "started" if entry.attempt is not None and entry.attempt > 1:
            where = "" if entry.worker is None else f" on worker {short(entry.worker)}"
            resumed = f", resumed from checkpoint {percent(job):.0f} %" if percent(job) else ""
            return Sentence(f"{name(job)}: attempt {entry.attempt}{where}{resumed}")
        case "retry":
            wait = (job.scheduled_for - entry.at).total_seconds()
            return Sentence(
                f"{name(job)}: attempt {entry.attempt} failed ({_error(entry)}), next attempt in {wait:.1f} s", "note"
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
    """Return the type of a job with its first argument, such as `encode_video holiday.mp4`."""
    subject = next(iter((job.arguments or {}).values()), "")
    return f"{job.type} {subject}".rstrip()


def short(worker: str | None) -> str:
    """Return the beginning of a worker's id."""
    return "?" if worker is None else worker[:4]


def percent(job: JobInfo) -> float:
    """Return the progress that the handler of a job has reported."""
    return 0.0 if job.progress is None else job.progress.percent


def _error(entry: HistoryInfo) -> str:
    if entry.error is None:
        return "no error recorded"
    return f"{entry.error.type}: {entry.error.message}"
