"""Quotas: how much one tenant may have waiting, running and coming in. That of `*` holds where a tenant has none.

What comes from outside is refused where it would be over. What running work brings forth is not: a workflow is never
cut in the middle; but it counts. Nothing here knows how what waits is counted, or who holds a tenant's place meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.limits.fleet_limit import ANY, FlowLimit
from ropewalk.domain.limits.rate import Algorithm, Rate, RateState, room_at, take, used
from ropewalk.domain.time import Instant, to_seconds
from ropewalk.errors import QuotaExceeded

PENDING_MAX: Final = 100_000
"""what waits is counted anew for every submission, which takes its time"""
COUNTED_MAX: Final = 10 * PENDING_MAX
"""how far what waits is counted for those who look"""
SOON_SECONDS: Final = 1.0
"""when to try again where nobody knows how soon a waiting job will run"""
_SMALLER: Final = "so many never fit: submit fewer at once"


class Quota(Struct, frozen=True, kw_only=True):
    tenant: str
    pending: int | None = None
    """how many jobs may wait: everything that is neither running nor finished"""
    running: int | None = None
    """how many may run at once"""
    submissions: Rate | None = None
    """how many may come in"""
    payload_bytes: int | None = None
    """how long the encoded input of one job may be"""

    @property
    def on_running(self) -> FlowLimit | None:
        """What a claim has to know of it."""
        if self.running is None:
            return None
        return FlowLimit(tenant=self.tenant, kind="tenant", name=self.tenant, concurrency=self.running)

    def or_else(self, other: Quota) -> Quota:
        """Where it says nothing, the other does."""
        return Quota(
            tenant=self.tenant,
            pending=other.pending if self.pending is None else self.pending,
            running=other.running if self.running is None else self.running,
            submissions=self.submissions or other.submissions,
            payload_bytes=other.payload_bytes if self.payload_bytes is None else self.payload_bytes,
        )


class QuotaUse(Struct, frozen=True, kw_only=True):
    """What holds for a tenant, and what it has of it now."""

    quota: Quota
    """its own, and where that says nothing the one for everybody"""
    pending: int
    """counted to a million"""
    running: int
    submissions: int
    """within the span of the rate; 0 where there is none"""


class Quotas:
    """All there are."""

    def __init__(self, quotas: Iterable[Quota] = ()) -> None:
        self.kept: dict[str, Quota] = {quota.tenant: quota for quota in quotas}

    def of(self, tenant: str) -> Quota | None:
        """What holds for this tenant."""
        own, everybody = self.kept.get(tenant), self.kept.get(ANY)
        if everybody is None or own is everybody:
            return own
        return (own or Quota(tenant=tenant)).or_else(everybody)

    def holding(self, tenants: Iterable[str]) -> dict[str, Quota]:
        """Those of these tenants, in their order."""
        if not self.kept:
            return {}
        return {tenant: quota for tenant in sorted(set(tenants)) if (quota := self.of(tenant)) is not None}


class QuotaCharge(Struct, frozen=True, array_like=True):
    """What came in under a rate. Another `per` or algorithm begins anew."""

    per: float
    algorithm: Algorithm
    state: RateState

    def under(self, rate: Rate) -> RateState | None:
        return self.state if (self.per, self.algorithm) == (rate.per, rate.algorithm) else None


class Allowance:
    """What one tenant may still submit in one transaction, of which `waiting` were there before."""

    def __init__(self, quota: Quota, *, waiting: int, spent: QuotaCharge | None, now: Instant) -> None:
        self._quota = quota
        self._waiting = waiting
        self._now = now
        rate = quota.submissions
        self._state = None if rate is None or spent is None else spent.under(rate)
        self._came_in = False

    def refusal(self, jobs: Sequence[NewJob]) -> QuotaExceeded | None:
        """Why these cannot come in together."""
        return self._too_long(jobs) or self._too_many(len(jobs)) or self._too_often(len(jobs))

    def admit(self, number: int) -> None:
        """So many came in from outside."""
        self.join(number)
        if (rate := self._quota.submissions) is not None:
            self._state = take(rate, self._state, self._now, number).state
            self._came_in = True

    def join(self, number: int) -> None:
        """So many more wait, whoever brought them."""
        self._waiting += number

    @property
    def spent(self) -> QuotaCharge | None:
        """To be kept, where it changed."""
        rate = self._quota.submissions
        if rate is None or self._state is None or not self._came_in:
            return None
        return QuotaCharge(to_seconds(rate.window_us), rate.algorithm, self._state)

    def _too_long(self, jobs: Sequence[NewJob]) -> QuotaExceeded | None:
        most = self._quota.payload_bytes
        worst = max(jobs, key=lambda new: len(new.input), default=None)
        if most is None or worst is None or len(worst.input) <= most:
            return None
        return QuotaExceeded(
            f"the input of {worst.type} is {len(worst.input):,} bytes, over payload_bytes={most:,} of tenant "
            f"{self._quota.tenant!r}: store the data elsewhere and pass a reference",
            limit="payload_bytes",
            current=len(worst.input),
            maximum=most,
            retry_after=None,
        )

    def _too_many(self, number: int) -> QuotaExceeded | None:
        most = self._quota.pending
        if most is None or not number or self._waiting + number <= most:
            return None
        there = min(self._waiting, most + 1)  # how far over is not counted
        advice = _SMALLER if number > most else "try again when some have run"
        return QuotaExceeded(
            f"tenant {self._quota.tenant!r} has {there:,} jobs waiting: {number:,} more are over its quota "
            f"pending={most:,}; {advice}",
            limit="pending",
            current=there,
            maximum=most,
            retry_after=None if number > most else SOON_SECONDS,
        )

    def _too_often(self, number: int) -> QuotaExceeded | None:
        rate, now = self._quota.submissions, self._now
        if rate is None or take(rate, self._state, now, number).granted == number:
            return None
        there = used(rate, self._state, now)
        wait = None if number > rate.count else to_seconds(room_at(rate, self._state, now, number) - now)
        advice = _SMALLER if wait is None else f"try again in {wait:.3g} s"
        return QuotaExceeded(
            f"tenant {self._quota.tenant!r} submitted {there:,} jobs: {number:,} more are over its quota "
            f"submissions={rate.count:,} in {rate.per:g} s; {advice}",
            limit="submissions",
            current=there,
            maximum=rate.count,
            retry_after=wait,
        )


class Admission:
    """The allowances of all tenants that one call submits for and that have one; mostly there is none."""

    def __init__(self, allowances: Mapping[str, Allowance] | None = None) -> None:
        self._allowances = allowances or {}

    def admit(self, jobs: Sequence[NewJob]) -> None:
        """They come in together, or QuotaExceeded says why none does."""
        parted = self._parted(jobs)
        for tenant, theirs in parted.items():
            refusal = self._allowances[tenant].refusal(theirs)
            if refusal is not None:
                raise refusal
        for tenant, theirs in parted.items():
            self._allowances[tenant].admit(len(theirs))

    def join(self, jobs: Sequence[NewJob]) -> None:
        """Running work brought them forth."""
        for tenant, theirs in self._parted(jobs).items():
            self._allowances[tenant].join(len(theirs))

    def spent(self) -> dict[str, QuotaCharge]:
        """To be kept."""
        return {tenant: spent for tenant, each in self._allowances.items() if (spent := each.spent) is not None}

    def _parted(self, jobs: Sequence[NewJob]) -> dict[str, list[NewJob]]:
        found: dict[str, list[NewJob]] = {}
        for new in jobs if self._allowances else ():
            if new.tenant in self._allowances:
                found.setdefault(new.tenant, []).append(new)
        return found
