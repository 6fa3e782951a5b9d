"""Quotas: how many jobs one tenant may have waiting and running, and how many it may submit in a span of time.

The quota of the tenant `*` fills in whatever the quota of a tenant leaves open. Submissions from outside are refused
if they exceed the quota. Jobs that a running job queues are counted but never refused, so that no workflow is cut off
in the middle. The store counts the waiting jobs, and lets nobody else submit for the tenant meanwhile.
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
"""No quota of waiting jobs is larger, because every submission counts the waiting jobs anew, which takes time."""
COUNTED_MAX: Final = 10 * PENDING_MAX
"""Waiting jobs are counted up to this number for people who look at the use of a quota."""
SOON_SECONDS: Final = 1.0
"""The advised wait after a refusal when nobody knows how soon a waiting job will run."""
_SMALLER: Final = "so many never fit: submit fewer at once"


class Quota(Struct, frozen=True, kw_only=True):
    """The quota of one tenant. None leaves a part of it open."""

    tenant: str
    """The name of the tenant; `*` means every tenant."""
    pending: int | None = None
    """This many jobs may wait: everything that is neither running nor finished counts."""
    running: int | None = None
    """This many jobs may run at once."""
    submissions: Rate | None = None
    """This many jobs may be submitted in a span of time."""
    payload_bytes: int | None = None
    """The encoded input of one job may have this many bytes."""

    @property
    def running_limit(self) -> FlowLimit | None:
        """The part of the quota that claims observe, as a limit of the fleet; None if it is open."""
        if self.running is None:
            return None
        return FlowLimit(tenant=self.tenant, kind="tenant", name=self.tenant, concurrency=self.running)

    def or_else(self, other: Quota) -> Quota:
        """Returns this quota with the parts that it leaves open taken from another one."""
        return Quota(
            tenant=self.tenant,
            pending=other.pending if self.pending is None else self.pending,
            running=other.running if self.running is None else self.running,
            submissions=self.submissions or other.submissions,
            payload_bytes=other.payload_bytes if self.payload_bytes is None else self.payload_bytes,
        )


class QuotaUse(Struct, frozen=True, kw_only=True):
    """The quota that applies to a tenant, and how much of it is in use now."""

    quota: Quota
    """The tenant's own quota, with the parts that it leaves open taken from the quota of `*`."""
    pending: int
    """This many jobs wait; they are counted up to a million."""
    running: int
    """This many jobs run."""
    submissions: int
    """This many jobs were submitted within the span of the rate; 0 if the quota has no rate."""


class Quotas:
    """All quotas that have been set."""

    def __init__(self, quotas: Iterable[Quota] = ()) -> None:
        self.by_tenant: dict[str, Quota] = {quota.tenant: quota for quota in quotas}

    def of(self, tenant: str) -> Quota | None:
        """Returns the quota that applies to this tenant, if there is one."""
        own, everybody = self.by_tenant.get(tenant), self.by_tenant.get(ANY)
        if everybody is None or own is everybody:
            return own
        return (own or Quota(tenant=tenant)).or_else(everybody)

    def for_tenants(self, tenants: Iterable[str]) -> dict[str, Quota]:
        """Returns the quotas that apply to these tenants, ordered by tenant."""
        if not self.by_tenant:
            return {}
        return {tenant: quota for tenant in sorted(set(tenants)) if (quota := self.of(tenant)) is not None}


class QuotaCharge(Struct, frozen=True, array_like=True):
    """What a tenant has used of the rate of its quota. A rate with another `per` or algorithm begins anew."""

    per: float
    algorithm: Algorithm
    state: RateState

    def under(self, rate: Rate) -> RateState | None:
        """Returns the state with which this rate goes on; None if the charge belongs to another rate."""
        return self.state if (self.per, self.algorithm) == (rate.per, rate.algorithm) else None


class Allowance:
    """What one tenant may still submit in one transaction, before which `waiting` of its jobs waited."""

    def __init__(self, quota: Quota, *, waiting: int, charge: QuotaCharge | None, now: Instant) -> None:
        self._quota = quota
        self._waiting = waiting
        self._now = now
        rate = quota.submissions
        self._state = None if rate is None or charge is None else charge.under(rate)
        self._is_charged = False

    def refusal(self, jobs: Sequence[NewJob]) -> QuotaExceeded | None:
        """Returns the reason why these jobs cannot be admitted together, or None."""
        return self._too_long(jobs) or self._too_many(len(jobs)) or self._too_often(len(jobs))

    def admit(self, number: int) -> None:
        """Counts jobs that were submitted from outside: they wait, and they count against the rate."""
        self.join(number)
        if (rate := self._quota.submissions) is not None:
            self._state = take(rate, self._state, self._now, number).state
            self._is_charged = True

    def join(self, number: int) -> None:
        """Counts jobs that wait, whoever queued them."""
        self._waiting += number

    @property
    def charge(self) -> QuotaCharge | None:
        """What the store has to write down about the rate; None if this transaction did not change it."""
        rate = self._quota.submissions
        if rate is None or self._state is None or not self._is_charged:
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
        there = min(self._waiting, most + 1)  # a store counts no further than one above the quota
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
    """The allowances of the tenants in one call that have a quota. Mostly there are none."""

    def __init__(self, allowances: Mapping[str, Allowance] | None = None) -> None:
        self._allowances = allowances or {}

    def admit(self, jobs: Sequence[NewJob]) -> None:
        """Admits these jobs from outside, or raises QuotaExceeded and admits none of them."""
        by_tenant = self._by_tenant(jobs)
        for tenant, theirs in by_tenant.items():
            refusal = self._allowances[tenant].refusal(theirs)
            if refusal is not None:
                raise refusal
        for tenant, theirs in by_tenant.items():
            self._allowances[tenant].admit(len(theirs))

    def join(self, jobs: Sequence[NewJob]) -> None:
        """Counts jobs that a running job queued; they are never refused."""
        for tenant, theirs in self._by_tenant(jobs).items():
            self._allowances[tenant].join(len(theirs))

    def charges(self) -> dict[str, QuotaCharge]:
        """Returns what the store has to write down about the rates, by tenant."""
        return {tenant: charge for tenant, each in self._allowances.items() if (charge := each.charge) is not None}

    def _by_tenant(self, jobs: Sequence[NewJob]) -> dict[str, list[NewJob]]:
        found: dict[str, list[NewJob]] = {}
        for new in jobs if self._allowances else ():
            if new.tenant in self._allowances:
                found.setdefault(new.tenant, []).append(new)
        return found
