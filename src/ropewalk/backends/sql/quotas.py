"""Quotas of tenants: their rows, and how a submission measures them.

The waiting jobs are counted each time and not stored as a number. Two submissions must not use the same room: a
submission for a tenant with a quota locks the row of the quota until it commits, and counts in a later statement than
the one that locked the row. It locks these rows first, sorted by tenant, so that a submission that waits for one has
locked nothing else but schedules.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ropewalk.backends.sql import limits
from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.lanes import epoch_and_control, quotas_of
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.limits.quota import COUNTED_MAX, Admission, Allowance, Quota, QuotaCharge, QuotaUse
from ropewalk.domain.limits.rate import used
from ropewalk.ports.store.submission import Submission

_charges = Rows("quota_charge", tuple[str, QuotaCharge])


def admission(tx: Tx, control: int, submissions: Sequence[Submission]) -> Admission:
    """Returns what the quotas allow for submissions from outside. The quotas of their tenants are locked from here
    on."""
    quotas = tx.lanes.quotas.at(tx, control).for_tenants(tenants_outside(submissions))
    _hold(
        tx, [tenant for tenant, quota in quotas.items() if quota.pending is not None or quota.submissions is not None]
    )
    return _measured(tx, quotas)


def admission_in_user_transaction(tx: Tx, control: int, submissions: Sequence[Submission]) -> Admission:
    """Returns what the quotas allow for submissions in a user's transaction. It may stay open for hours, so nothing is
    locked, and the rates were charged before in a transaction of their own (`charge_rates`)."""
    quotas = tx.lanes.quotas.at(tx, control).for_tenants(tenants_outside(submissions))
    return _measured(tx, {tenant: msgspec.structs.replace(quota, submissions=None) for tenant, quota in quotas.items()})


def charge_rates(tx: Tx, submissions: Sequence[Submission]) -> None:
    """Charges the rates for submissions that a user's transaction is about to make. Raises QuotaExceeded."""
    quotas = tx.lanes.quotas.at(tx, epoch_and_control(tx)[1]).for_tenants(tenants_outside(submissions))
    rated = {
        tenant: Quota(tenant=tenant, submissions=quota.submissions)
        for tenant, quota in quotas.items()
        if quota.submissions is not None
    }
    _hold(tx, list(rated))
    paying = _measured(tx, rated)
    paying.admit([new for submission in submissions for new in submission.jobs])
    write_charges(tx, paying)


def write_charges(tx: Tx, admission: Admission) -> None:
    """Writes what the submissions used up of rates."""
    rows = [(tenant, msgspec.json.encode(charge).decode()) for tenant, charge in sorted(admission.charges().items())]
    tx.run_rows(tx.sql.charge_quotas, rows)


def tenants_outside(submissions: Sequence[Submission]) -> set[str]:
    """Returns the tenants of these submissions, except those that a running job makes: they need no admission."""
    return {new.tenant for submission in submissions if submission.under is None for new in submission.jobs}


def put(tx: Tx, quota: Quota) -> None:
    """Stores a quota, and the fleet limit that enforces its part for running jobs."""
    rate = quota.submissions
    how_often = (None, None, None) if rate is None else (rate.count, rate.window_us, rate.algorithm)
    tx.run(tx.sql.put_quota, (quota.tenant, quota.pending, quota.running, *how_often, quota.payload_bytes))
    if (running_limit := quota.running_limit) is None:
        limits.remove(tx, quota.tenant, "tenant", quota.tenant)
    else:
        limits.put(tx, running_limit)
    tx.run(tx.sql.bump_control)  # This is necessary even if that limit stays as it is.


def remove(tx: Tx, tenant: str) -> bool:
    """Deletes a quota. Returns False if there is none."""
    gone = tx.run(tx.sql.remove_quota, (tenant,)) == 1
    if gone:
        limits.remove(tx, tenant, "tenant", tenant)
        tx.run(tx.sql.bump_control)
    return gone


def all_quotas(tx: Tx) -> list[Quota]:
    """Returns all quotas, ordered by tenant."""
    return list(quotas_of(tx).by_tenant.values())


def use(tx: Tx, tenant: str) -> QuotaUse | None:
    """Returns the quota of a tenant and what is in use of it; None if it has none."""
    quota = quotas_of(tx).of(tenant)
    if quota is None:
        return None
    rate, charge = quota.submissions, _charges_of(tx, [tenant]).get(tenant)
    state = None if rate is None or charge is None else charge.under(rate)
    running = limits.running(tx, tx.lanes)
    return QuotaUse(
        quota=quota,
        pending=tx.value(tx.sql.waiting_of, (tenant, COUNTED_MAX)),
        running=sum(number for lane, number in running.items() if lane.tenant == tenant),
        submissions=0 if rate is None else used(rate, state, tx.now),
    )


def _hold(tx: Tx, tenants: list[str]) -> None:
    """Locks the quotas of these tenants."""
    if tenants:
        tx.run(tx.sql.lock_quotas, (msgspec.json.encode(tenants).decode(),))


def _measured(tx: Tx, quotas: dict[str, Quota]) -> Admission:
    """Measures these quotas."""
    rated = [tenant for tenant, quota in quotas.items() if quota.submissions is not None]
    charges = _charges_of(tx, rated) if rated else {}
    return Admission(
        {
            tenant: Allowance(quota, waiting=_waiting(tx, quota), charge=charges.get(tenant), now=tx.now)
            for tenant, quota in quotas.items()
        }
    )


def _waiting(tx: Tx, quota: Quota) -> int:
    """Counts the waiting jobs of a tenant, but no further than one above its quota."""
    if quota.pending is None:
        return 0
    waiting: int = tx.value(tx.sql.waiting_of, (quota.tenant, quota.pending + 1))
    return waiting


def _charges_of(tx: Tx, tenants: Sequence[str]) -> dict[str, QuotaCharge]:
    return dict(_charges.decode(tx, tx.value(tx.sql.quota_charges, (msgspec.json.encode(list(tenants)).decode(),))))
