"""S9: quotas, their use and their refusals, against the rule said plainly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from ropewalk import QuotaExceeded, Rate
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitRules, Measure
from ropewalk.domain.limits.quota import Admission, Allowance, Quota, QuotaCharge, Quotas
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.builders import new_job

NOW = 1_700_000_000 * SECOND
EVERYBODY = Quota(tenant="*", pending=5, running=2, submissions=Rate(3, per=60), payload_bytes=100)


def allowance(quota: Quota, waiting: int = 0, charge: QuotaCharge | None = None) -> Allowance:
    return Allowance(quota, waiting=waiting, charge=charge, now=NOW)


def test_each_part_is_the_tenants_own_or_that_of_everybody() -> None:
    own = Quota(tenant="a", pending=9, submissions=Rate(1, per=1))
    quotas = Quotas([EVERYBODY, own])
    assert quotas.of("a") == Quota(tenant="a", pending=9, running=2, submissions=Rate(1, per=1), payload_bytes=100)
    assert quotas.of("b") == Quota(tenant="b", pending=5, running=2, submissions=Rate(3, per=60), payload_bytes=100)
    assert quotas.of("*") == EVERYBODY
    assert Quotas([own]).of("b") is None
    assert list(Quotas([own, Quota(tenant="b", pending=1)]).for_tenants(["c", "b", "a", "a"])) == ["a", "b"]
    assert Quotas().for_tenants(["a"]) == {}


def test_what_may_run_is_a_limit_of_the_tenant() -> None:
    """Its own before that of everybody, which each tenant has to itself."""
    limits = [EVERYBODY.running_limit, Quota(tenant="a", running=7).running_limit]
    rules = LimitRules(limit for limit in limits if limit is not None)
    assert rules.on(LaneName("a", "q", "t", "")) == [Measure(("a", "tenant", "a"), "a")]
    assert rules.on(LaneName("b", "q", "t", "k")) == [Measure(("*", "tenant", "*"), "b")]
    assert Quota(tenant="a", pending=1).running_limit is None
    assert rules.of_tenant("a") == [], "it is set as a quota"
    assert rules.limits["*", "tenant", "*"] == FlowLimit(tenant="*", kind="tenant", name="*", concurrency=2)


@given(st.integers(0, 8), st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=12), st.integers(1, 9))
def test_never_more_are_let_in_than_may_wait(before: int, calls: list[tuple[bool, int]], most: int) -> None:
    """And everything that fits is; what joins from inside is never refused."""
    admission = Admission({"default": allowance(Quota(tenant="default", pending=most), before)})
    waiting = before
    for from_outside, number in calls:
        jobs = [new_job(), *(new_job() for _ in range(number))][1:]
        if not from_outside:
            admission.join(jobs)
            waiting += number
            continue
        try:
            admission.admit(jobs)
        except QuotaExceeded as error:
            assert waiting + number > most
            assert (error.limit, error.current, error.maximum) == ("pending", min(waiting, most + 1), most)
        else:
            waiting += number
            assert not number or waiting <= most
    assert admission.charges() == {}


def test_of_several_tenants_none_comes_in_when_one_is_refused() -> None:
    rate = Rate(5, per=60)
    one = Allowance(Quota(tenant="one", submissions=rate), waiting=0, charge=None, now=NOW)
    two = Allowance(Quota(tenant="two", pending=1), waiting=1, charge=None, now=NOW)
    admission = Admission({"one": one, "two": two})
    with pytest.raises(QuotaExceeded, match="tenant 'two' has 1 jobs waiting: 1 more are over its quota pending=1"):
        admission.admit([new_job(tenant="one"), new_job(tenant="free"), new_job(tenant="two")])
    assert admission.charges() == {}
    admission.admit([new_job(tenant="one"), new_job(tenant="free")])
    assert list(admission.charges()) == ["one"]


def test_what_was_spent_outlives_the_transaction() -> None:
    quota = Quota(tenant="a", submissions=Rate(2, per=60))
    first = allowance(quota)
    first.admit(2)
    charge = json.decode(json.encode(first.charge), type=QuotaCharge)
    refusal = allowance(quota, charge=charge).refusal([new_job()])
    assert refusal is not None
    assert (refusal.limit, refusal.retry_after) == ("submissions", 60.0)
    for other in (Rate(2, per=61), Rate(2, per=60, algorithm="token")):
        assert allowance(Quota(tenant="a", submissions=other), charge=charge).refusal([new_job()]) is None
    assert allowance(Quota(tenant="a", submissions=Rate(3, per=60)), charge=charge).refusal([new_job()]) is None


def test_nothing_fits_always() -> None:
    full = Quota(tenant="a", pending=1, submissions=Rate(1, per=60), payload_bytes=1)
    used_up = Allowance(full, waiting=0, charge=None, now=NOW)
    used_up.admit(1)
    assert used_up.refusal([]) is None


@pytest.mark.parametrize(
    ("quota", "jobs", "message"),
    [
        (Quota(tenant="a", pending=3), 2, "2 more are over its quota pending=3; try again when some have run"),
        (Quota(tenant="a", pending=3), 4, "pending=3; so many never fit: submit fewer at once"),
        (Quota(tenant="a", submissions=Rate(1, per=9)), 2, "submissions=1 in 9 s; so many never fit"),
        (Quota(tenant="a", payload_bytes=1), 1, "the input of t is 2 bytes, over payload_bytes=1 of tenant 'a': store"),
    ],
)
def test_a_refusal_says_what_to_do(quota: Quota, jobs: int, message: str) -> None:
    refusal = allowance(quota, waiting=2).refusal([new_job() for _ in range(jobs)])
    assert refusal is not None
    with pytest.raises(QuotaExceeded, match=message):
        raise refusal
