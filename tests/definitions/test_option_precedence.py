"""D8: six levels of options, strongest first: call, using, computed from the input, type, app, built in."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.options import AppDefaults, EnqueueOptions, JobTypeOptions
from ropewalk.definitions.submission import skips_queue, to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.retry import Backoff, resolve
from ropewalk.domain.time import HOUR, SECOND, to_instant
from ropewalk.errors import DefinitionError

LEVELS = ("call", "using", "computed", "type", "app")

# option of a job, field of the stored job, how the value of a level (0 strongest) is written and stored
EVERYWHERE: list[tuple[str, str, list[Any], list[Any]]] = [
    ("queue", "queue", list("abcde"), list("abcde")),
    ("priority", "priority", [5, 4, 3, 2, 1], [5, 4, 3, 2, 1]),
    ("max_attempts", "max_attempts", [None, 4, 7, 2, 9], [None, 4, 7, 2, 9]),
    ("max_crashes", "max_crashes", [5, 4, 7, 2, 9], [5, 4, 7, 2, 9]),
    ("ttl", "ttl_us", [5, 4, 7, 2, 9], [each * SECOND for each in (5, 4, 7, 2, 9)]),
]
# of these a stored job keeps only what was said about it alone
PER_JOB = [
    ("timeout", "timeout_us", [5, 4, 7], [each * SECOND for each in (5, 4, 7)]),
    ("lease", "lease_us", [5, 4, 7], [each * SECOND for each in (5, 4, 7)]),
    ("correlation_id", "correlation_id", list("abc"), list("abc")),
    ("workflow_id", "workflow_id", list("abc"), list("abc")),
    ("workflow_type", "workflow_type", list("abc"), list("abc")),
    ("tenant", "tenant", list("abc"), list("abc")),
    ("tags", "tags", [{"a": "1"}, {"b": "2"}, {}], [{"a": "1"}, {"b": "2"}, {}]),
    ("delay", "delay_us", [0, 4, 7], [0, 4 * SECOND, 7 * SECOND]),
]
PAIRS = list(itertools.combinations(range(5), 2))


@pytest.mark.parametrize(("option", "stored", "values", "expected"), EVERYWHERE, ids=[each[0] for each in EVERYWHERE])
@pytest.mark.parametrize("pair", PAIRS, ids=[f"{LEVELS[a]} beats {LEVELS[b]}" for a, b in PAIRS])
def test_every_pair(option: str, stored: str, values: list[Any], expected: list[Any], pair: tuple[int, int]) -> None:
    new = submitted({LEVELS[level]: {option: values[level]} for level in pair})
    assert getattr(new, stored) == expected[pair[0]]


@pytest.mark.parametrize(("option", "stored", "values", "expected"), PER_JOB, ids=[each[0] for each in PER_JOB])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_every_pair_of_one_job(
    option: str, stored: str, values: list[Any], expected: list[Any], pair: tuple[int, int]
) -> None:
    new = submitted({LEVELS[level]: {option: values[level]} for level in pair})
    assert getattr(new, stored) == expected[pair[0]]


@pytest.mark.parametrize("option", ["timeout", "lease", "backoff"])
def test_what_the_worker_decides_is_not_stored(option: str) -> None:
    value: Any = Backoff.constant(3) if option == "backoff" else 9
    new = submitted({"type": {option: value}, "app": {option: value}})
    assert (new.timeout_us, new.lease_us, new.backoff) == (None, None, None)


def test_built_in() -> None:
    new = submitted({})
    assert (new.queue, new.priority, new.max_attempts, new.max_crashes) == ("default", 0, 3, 3)
    assert (new.ttl_us, new.deadline, new.delay_us, new.run_at, new.key, new.on_failure) == (
        None,
        None,
        0,
        None,
        None,
        None,
    )
    assert (new.tags, new.tenant, new.strict_order) == ({}, "acme", False)


def test_backoff_merges_field_by_field() -> None:
    new = submitted(
        {
            "call": {"backoff": Backoff(initial_us=1)},
            "using": {"backoff": Backoff(initial_us=2, jitter=0.25)},
            "computed": {"backoff": Backoff(strategy="linear", jitter=0.5, max_us=9)},
            "type": {"backoff": Backoff(multiplier=7)},
        }
    )
    assert new.backoff == Backoff(strategy="linear", initial_us=1, jitter=0.25, max_us=9)
    assert resolve(new.backoff, Backoff(multiplier=7)).multiplier == 7


@pytest.mark.parametrize(
    ("said", "run_at", "delay_us"),
    [
        ({"call": {"delay": 3, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}}, datetime(2030, 1, 1, tzinfo=UTC), 3),
        ({"call": {"delay": 3}, "using": {"run_at": datetime(2030, 1, 1, tzinfo=UTC)}}, None, 3),
        (
            {"using": {"run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "computed": {"delay": 3}},
            datetime(2030, 1, 1, tzinfo=UTC),
            0,
        ),
    ],
    ids=["run_at wins beside delay", "a stronger delay puts run_at away", "a stronger run_at puts delay away"],
)
def test_when(said: dict[str, Any], run_at: datetime | None, delay_us: int) -> None:
    new = submitted(said)
    assert new.run_at == (None if run_at is None else to_instant(run_at, "run_at"))
    assert new.delay_us == delay_us * SECOND


def test_how_long() -> None:
    end = datetime(2030, 1, 1, tzinfo=UTC)
    both = submitted({"call": {"deadline": end}, "using": {"ttl": 5}, "type": {"ttl": 6}, "app": {"ttl": 7}})
    assert (both.deadline, both.ttl_us) == (to_instant(end, "deadline"), None)
    shorter = submitted({"call": {"ttl": 5}, "using": {"deadline": end}})
    assert (shorter.deadline, shorter.ttl_us) == (None, 5 * SECOND)


def test_idempotency() -> None:
    new = submitted(
        {
            "call": {"idempotency_scope": "any"},
            "using": {"idempotency_key": "k"},
            "computed": {"idempotency_window": 3600},
        }
    )
    assert new.key is not None
    assert (new.key.key, new.key.scope, new.key.window_us) == ("k", "any", HOUR)


def test_unique_computes_the_key_of_a_job_without_one() -> None:
    said: dict[str, Any] = {"type": {"unique": lambda arguments: f"n={arguments['n']}"}}
    assert _key(submitted(said)) == "n=1"
    assert _key(submitted({**said, "computed": {"idempotency_key": "c"}})) == "c"
    assert _key(submitted({**said, "using": {"idempotency_key": "u"}})) == "u"


@pytest.mark.parametrize(
    ("said", "skips"),
    [
        ({}, False),
        ({"type": {"skip_queue": True}}, True),
        ({"type": {"skip_queue": True}, "computed": {"skip_queue": False}}, False),
        ({"computed": {"skip_queue": False}, "using": {"skip_queue": True}}, True),
        ({"using": {"skip_queue": True}, "call": {"skip_queue": False}}, False),
    ],
)
def test_skip_queue(said: dict[str, Any], skips: bool) -> None:
    built, call, _ = built_with(said)
    assert skips_queue(built, call) is skips


def test_the_id_of_the_call_wins() -> None:
    assert submitted({"using": {"id": "u"}}).id == "u"
    assert submitted({"using": {"id": "u"}, "call": {"id": "c"}}).id == "c"


def test_strict_order_is_the_apps() -> None:
    assert submitted({"app": {"strict_order": True}}).strict_order


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"queue": ""}, "queue is empty"),
        ({"priority": 1.5}, "priority=1.5 must be a whole number"),
        ({"max_attempts": 0}, "max_attempts=0 must be at least 1"),
        ({"max_crashes": None}, "max_crashes=None must be a whole number"),
        ({"timeout_us": 1.5}, "timeout_us=1.5 must be a whole number"),
        ({"lease_us": 0}, "lease_us=0 must be at least 1"),
        ({"lease_us": 999_999}, "lease=0.999999 must be at least 1 second"),
        ({"backoff": 3}, "backoff=3 must be a Backoff"),
        ({"decide": "abort"}, "decide='abort' must be a function"),
    ],
)
def test_wrong_defaults_of_an_app(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError, match=f"AppDefaults: {told}"):
        AppDefaults(**wrong)


def test_options_are_computed_from_all_arguments() -> None:
    @job(options=lambda arguments: {"priority": len(arguments), "queue": str(arguments["b"])})
    async def two(a: int, b: str = "late") -> None: ...

    new = to_new_job(two(1), call={}, defaults=AppDefaults(), bounds=Bounds(), tenant="acme")
    assert (new.priority, new.queue) == (2, "late")


def submitted(said: dict[str, dict[str, Any]]) -> NewJob:
    built, call, defaults = built_with(said)
    return to_new_job(built, call=call, defaults=defaults, bounds=Bounds(), tenant="acme")


def built_with(said: dict[str, dict[str, Any]]) -> tuple[Any, EnqueueOptions, AppDefaults]:
    """A job with options at the named levels."""
    computed: Any = said.get("computed")
    options = cast("JobTypeOptions", dict(said.get("type", {})))
    if computed is not None:
        options["options"] = lambda _: computed

    @job(**options)
    async def work(n: int) -> None: ...

    spans = {"ttl", "timeout", "lease"}
    app = said.get("app", {})
    defaults = AppDefaults(**{f"{k}_us" if k in spans else k: v * SECOND if k in spans else v for k, v in app.items()})
    call: Any = said.get("call", {})
    return work(1).using(**said.get("using", {})), call, defaults


def _key(new: NewJob) -> str | None:
    return None if new.key is None else new.key.key
