"""What else happened because of a change, for events and hints."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move


class Moved(Struct, frozen=True, kw_only=True):
    """A job the store itself moved (a lost lease, a passed deadline), for events and hints."""

    job: JobRecord
    move: Move


class ClosedGroup(Struct, frozen=True, order=True):
    """Nothing in this group is open any more. Ids are a tenant's own, so its name belongs to it."""

    tenant: str
    id: str


class PassedOver(Struct, frozen=True):
    """A record that stays as it is, because changing it raised an error that nobody expects. Others went on."""

    name: str
    """The record in words, such as `job 01980f…` or `group 01980f…`."""
    error: Exception


class Consequences(Struct, frozen=True, kw_only=True):
    """What else happened because of it, for events and hints: dependants doomed or ready, groups closed."""

    moved: list[Moved] = []
    """Jobs that ended behind gates that can no longer open, or in a cancelled group."""
    ready: list[str] = []
    """The queues in which jobs became ready."""
    closed: list[ClosedGroup] = []
    more: bool = False
    """Whether some of it is left for `cascade`."""
    passed_over: list[PassedOver] = []
    """Records that stay as they are, because changing them raised an error that nobody expects."""
