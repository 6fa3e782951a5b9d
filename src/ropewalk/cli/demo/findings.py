"""What the demo saw, for its promises to be checked against."""

from __future__ import annotations

from dataclasses import dataclass, field

from ropewalk.client.views.jobs import JobInfo
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
