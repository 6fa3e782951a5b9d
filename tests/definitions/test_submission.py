"""D8: what is submitted: option errors name the field, limits are checked, compensations are stored with the job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ropewalk.definitions.codec.codec import JsonCodec
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.options import AppDefaults
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.order import Priority
from ropewalk.domain.jobs.record import CompensationSpec, NewJob, new_record
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import compensation
from ropewalk.errors import DefinitionError, InvalidInput, LimitExceeded

NAIVE = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@job
async def charge(card: str, cents: int, *, note: str = "") -> int: ...


def submitted(built: Any, *, defaults: AppDefaults | None = None, bounds: Bounds | None = None, **call: Any) -> NewJob:
    given: Any = call
    return to_new_job(built, call=given, defaults=defaults or AppDefaults(), bounds=bounds or Bounds(), tenant="acme")


def test_everything_is_carried_over() -> None:
    built = charge("4242", 100)
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert submitted(
        built,
        run_at=at,
        priority=Priority.HIGH,
        queue="money",
        max_attempts=None,
        max_crashes=1,
        backoff=Backoff.constant(3),
        timeout=timedelta(seconds=2),
        deadline=at,
        lease=5,
        idempotency_key="k",
        correlation_id="c",
        tags={"a": "b"},
        workflow_id="w",
        workflow_type="checkout",
        tenant="other",
    ) == NewJob(
        id=built.id,
        type="charge",
        input=b'{"card":"4242","cents":100}',
        tenant="other",
        queue="money",
        priority=100,
        run_at=1_893_456_000 * SECOND,
        max_attempts=None,
        max_crashes=1,
        backoff=Backoff.constant(3),
        timeout_us=2 * SECOND,
        deadline=1_893_456_000 * SECOND,
        lease_us=5 * SECOND,
        key=submitted(built, idempotency_key="k").key,
        correlation_id="c",
        tags={"a": "b"},
        workflow_id="w",
        workflow_type="checkout",
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dely": 3}, "'dely' is no option of a job; did you mean 'delay'? Allowed: allow_missing, "),
        ({"delay": "1"}, "delay='1' is not a duration"),
        ({"delay": None}, "delay=None is not a duration"),
        ({"run_at": NAIVE}, "has no time zone"),
        ({"run_at": "2030"}, "run_at='2030' is not a datetime"),
        ({"priority": 1.5}, "priority=1.5 must be a whole number"),
        ({"priority": 1001}, "priority=1001 is outside"),
        ({"queue": ""}, "queue is empty"),
        ({"queue": None}, "queue=None must be a string"),
        ({"max_attempts": 0}, "max_attempts=0 must be at least 1"),
        ({"max_attempts": 101}, "max_attempts=101 must be between"),
        ({"max_crashes": 0}, "max_crashes=0 must be at least 1"),
        ({"backoff": 3}, "backoff=3 must be a Backoff"),
        ({"backoff": lambda attempt: attempt}, "backoff is a function, which cannot be stored: give it to @job"),
        ({"timeout": 0}, "timeout=0 must be more than 0"),
        ({"deadline": 3}, "deadline=3 is not a datetime"),
        ({"ttl": 0}, "ttl=0 must be more than 0"),
        ({"lease": "1m"}, "lease='1m' is not a duration"),
        ({"lease": 0.3}, "lease=0.3 must be at least 1 second"),
        ({"idempotency_key": 3}, "idempotency_key=3 must be a string"),
        ({"idempotency_scope": "all"}, "idempotency_scope='all' must be 'open' or 'any'"),
        ({"idempotency_scope": "any"}, "idempotency_scope is given without idempotency_key"),
        ({"idempotency_window": 5}, "idempotency_window is given without idempotency_key"),
        ({"correlation_id": ""}, "correlation_id is empty"),
        ({"tags": ["a"]}, "tags=['a'] must be a mapping"),
        ({"tags": {"a": 1}}, "tags: 'a'=1"),
        ({"workflow_id": 3}, "workflow_id=3 must be a string"),
        ({"workflow_type": 3}, "workflow_type=3 must be a string"),
        ({"on_failure": "undo"}, "on_failure='undo' must be a job type, a job or None"),
        ({"tenant": ""}, "tenant is empty"),
        ({"skip_queue": 1}, "skip_queue=1 must be True or False"),
        ({"id": ""}, "id is empty"),
    ],
)
def test_option_errors_name_the_field(options: dict[str, Any], told: str) -> None:
    field = next(iter(options))
    with pytest.raises(InvalidInput) as refusal:
        submitted(charge("a", 1), **options)
    assert told in str(refusal.value)
    assert refusal.value.field == field


def test_computed_options_are_checked_like_any_other() -> None:
    @job(options=lambda arguments: arguments["given"])
    async def work(given: dict[str, int]) -> None: ...

    assert submitted(work({"priority": 3})).priority == 3
    with pytest.raises(InvalidInput, match="'prio' is no option of a job; did you mean 'priority'"):
        submitted(work({"prio": 3}))

    @job(options=lambda arguments: None)  # type: ignore[arg-type, return-value]
    async def wrong(a: int) -> None: ...

    with pytest.raises(InvalidInput, match="options= of wrong returned None: return a dict of options"):
        submitted(wrong(1))


def test_unique_must_return_a_string() -> None:
    @job(unique=lambda arguments: arguments["a"])
    async def work(a: int) -> None: ...

    with pytest.raises(InvalidInput, match="unique= of work returned 1: return a string"):
        submitted(work(1))


def test_limits_are_checked() -> None:
    with pytest.raises(LimitExceeded) as refusal:
        submitted(charge("x" * 100, 1), bounds=Bounds(payload_bytes_max=100))
    assert refusal.value.field == "input"
    with pytest.raises(LimitExceeded):
        submitted(charge("x", 1), tags={str(n): "" for n in range(33)})


def test_tags_are_copied() -> None:
    tags = {"a": "b"}
    new = submitted(charge("x", 1), tags=tags)
    tags["c"] = "d"
    assert new.tags == {"a": "b"}


# ── on_failure ──────────────────────────────────────────────────────────────────────────────────────────────────


@job(queue="refunds", priority=7, max_attempts=9, timeout=3)
async def refund(ctx: Context, card: str, cents: int = 0, reason: str = "failed") -> None: ...


@job(on_failure=refund)
async def pay(card: str, cents: int) -> None: ...


@job
async def alarm(text: str) -> None: ...


def test_a_type_takes_over_the_arguments_it_names() -> None:
    new = submitted(pay("4242", 100), defaults=AppDefaults(max_crashes=2))
    assert new.on_failure == CompensationSpec(
        type="refund",
        accepts=("card", "cents", "reason"),
        queue="refunds",
        priority=7,
        max_attempts=9,
        max_crashes=2,
    )
    record = new_record(new, seq=1, now=0)
    record.error = ErrorInfo(category=Category.PERMANENT, message="no")
    made = compensation(record)
    assert made is not None
    assert refund.decode_input(made.input) == {"card": "4242", "cents": 100, "reason": "failed"}


def test_a_job_is_a_template() -> None:
    template = alarm("help").using(queue="alarms", priority=3, max_attempts=1, timeout=9, backoff=Backoff(jitter=0))
    new = submitted(charge("a", 1).using(on_failure=template))
    assert new.on_failure == CompensationSpec(
        type="alarm",
        input=b'{"text":"help"}',
        queue="alarms",
        priority=3,
        max_attempts=1,
        timeout_us=9 * SECOND,
        backoff=Backoff(jitter=0),
    )


def test_a_template_computes_its_options_too() -> None:
    @job(options=lambda arguments: {"priority": len(str(arguments["text"])), "delay": 3})
    async def shout(text: str) -> None: ...

    follow_up = submitted(charge("a", 1), on_failure=shout("help")).on_failure
    assert follow_up is not None
    assert follow_up.priority == 4


def test_none_puts_the_types_own_away() -> None:
    assert submitted(pay("a", 1), on_failure=None).on_failure is None
    assert submitted(pay("a", 1).using(on_failure=None)).on_failure is None
    assert submitted(pay("a", 1).using(on_failure=None), on_failure=refund).on_failure is not None


def test_compensations_of_compensations() -> None:
    @job(on_failure=alarm("refund failed"))
    async def careful(card: str) -> None: ...

    follow_up = submitted(charge("a", 1), on_failure=careful).on_failure
    assert follow_up is not None
    assert follow_up.on_failure == CompensationSpec(type="alarm", input=b'{"text":"refund failed"}')
    template = careful("4242").using(on_failure=refund)
    follow_up = submitted(charge("a", 1), on_failure=template).on_failure
    assert follow_up is not None
    assert follow_up.on_failure is not None
    assert (follow_up.on_failure.type, follow_up.on_failure.input) == ("refund", None)


def test_a_parameter_the_original_lacks() -> None:
    @job(on_failure=alarm)
    async def work(card: str) -> None: ...

    told = "on_failure=alarm: it requires text, which work does not take; give the parameter a default, or give a job"
    for _ in range(2):
        with pytest.raises(DefinitionError, match=told):
            work("a")
    with pytest.raises(InvalidInput, match="it requires text, which charge does not take") as refusal:
        submitted(charge("a", 1), on_failure=alarm)
    assert refusal.value.field == "on_failure"


def test_arguments_behind_another_codec_cannot_be_taken_over() -> None:
    class Sealed(JsonCodec):
        pass

    @job(codec=Sealed(), on_failure=refund)
    async def sealed(card: str) -> None: ...

    with pytest.raises(DefinitionError, match="only as plain JSON, not with a codec; give a job instead"):
        sealed("4242")


@pytest.mark.parametrize("options", [{"delay": 3}, {"tags": {}}, {"tenant": "x"}, {"idempotency_key": "k"}])
def test_a_template_cannot_say_what_a_follow_up_cannot_carry(options: Any) -> None:
    with pytest.raises(InvalidInput, match=f"a compensation cannot have {next(iter(options))}="):
        submitted(charge("a", 1), on_failure=alarm("x").using(**options))
