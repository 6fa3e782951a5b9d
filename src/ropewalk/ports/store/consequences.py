"""The consequences of a change: what else happened because of it, for events and hints."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move


class Moved(Struct, frozen=True, kw_only=True):
    """A job that the store itself moved, because its lease was lost or its deadline passed, for example."""

    job: JobRecord
    move: Move


class ClosedGroup(Struct, frozen=True, order=True):
    """A group in which nothing is open any more. Its id is unique only within its tenant."""

    tenant: str
    id: str


class PassedOver(Struct, frozen=True):
    """A record that stays as it is, because changing it raised an error that nobody expects. Others went on."""

    name: str
    """The record in words, such as `job 01980f…` or `group 01980f…`."""
    error: Exception


class Consequences(Struct, frozen=True, kw_only=True):
    """What else happened because of a change: other jobs ended or became ready, and groups closed."""

    moved: list[Moved] = []
    """The jobs that ended because their gate can no longer open, or because their group was cancelled."""
    ready: list[str] = []
    """The queues in which jobs became ready."""
    closed: list[ClosedGroup] = []
    """The groups that closed."""
    more: bool = False
    """Whether some consequences were postponed; `cascade` continues with them."""
    passed_over: list[PassedOver] = []
    """Records that stay as they are, because changing them raised an error that nobody expects."""
