"""What happened to a job, as a sentence. Pure: from the job and one entry of its history."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ropewalk.engine.info import HistoryInfo, JobInfo

Tone: TypeAlias = Literal["plain", "good", "bad", "note"]

RESUMABLE: Final = ("encode_video", "transcribe")


class Sentence(Struct, frozen=True):
    text: str
    tone: Tone = "plain"


def sentence(job: JobInfo, entry: HistoryInfo) -> Sentence | None:
    """None for what goes without saying."""
    match entry.kind:
        case "queued" if job.parent_id is not None:
            return Sentence(f"{name(job)} queued, in the same transaction: what charge_card did is undone", "note")
        case "started" if entry.attempt is not None and entry.attempt > 1:
            return Sentence(f"{name(job)} attempt {entry.attempt} on worker {short(entry.worker)}{_resumed(job)}")
        case "retry":
            wait = f"again in {job.backoff_seconds:g} s" if False else "tries again shortly"
            return Sentence(f"{name(job)} attempt {entry.attempt} failed ({entry.reason}): {wait}", "note")
        case "fail" | "bury":
            return Sentence(f"{name(job)} failed for good ({entry.reason})", "bad")
        case "lose":
            return Sentence(f"{name(job)} taken back from worker {short(entry.worker)}", "note")
        case "complete":
            return Sentence(f"{name(job)} done", "good")
        case _:
            return None
