"""Everything the rules look at, gathered at one moment."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.time import Span
from ropewalk.ports.store.diagnosis import Examination
from ropewalk.ports.store.messages import Durability, LimitUse, WorkerCard


class ClockReading(Struct, frozen=True, kw_only=True):
    """The store's clock against this machine's."""

    ahead_us: int
    """negative: it is behind"""
    uncertain_us: Span
    """half of the round trip: it may be off by so much"""


class Late(Struct, frozen=True, kw_only=True):
    """A schedule whose time has come and gone."""

    name: str
    tenant: str
    late_us: Span


class Facts(Struct, frozen=True, kw_only=True):
    durability: Durability
    examination: Examination
    workers: list[WorkerCard]
    late: list[Late]
    """schedules that should have fired, the latest first"""
    full: list[LimitUse]
    """limits that leave no room, of tenants whose jobs could start"""
    clock: ClockReading
    hint_us: Span | None
    """how long a hint took to another store on the same data; None: it did not arrive, or there is no other"""
