"""D1, D6: what `@job` makes of a function, and which functions it refuses."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from msgspec import UNSET

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.results import Result
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import SECOND
from ropewalk.errors import DefinitionError

if TYPE_CHECKING:
    from decimal import Decimal  # seen by checkers only


@job
async def add(a: int, b: int = 1) -> int:
    """Sum of two."""
    return a + b


@job
def sync_one(ctx: Context, text: str) -> None:
    ctx.sync.checkpoint(text)


@job(executor="process")
def in_a_process(n: int) -> int:
    return n


def test_it_keeps_what_the_function_is() -> None:
    assert add.name == add.__name__ == "add"
    assert add.__doc__ == "Sum of two."
    assert add.__wrapped__ is add.handler
    assert (add.module, add.qualname) == (__name__, "add")
    assert repr(add) == f"<job type add ({__name__}.add)>"


@pytest.mark.parametrize(
    ("job_type", "style", "takes_context"),
    [(add, "async", False), (sync_one, "thread", True), (in_a_process, "process", False)],
)
def test_style_and_context(job_type: JobType[..., Any, Any], style: str, takes_context: bool) -> None:
    assert job_type.style == style
    assert job_type.takes_context is takes_context


def test_a_wrapper_around_an_async_function_is_async() -> None:
    async def inner(a: int) -> int:
        return a

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    assert job(outer).style == "async"
    assert job(executor="thread")(outer).style == "thread"


def test_attributes_of_the_function_stay_its_own() -> None:
    async def marked(a: int) -> int:
        return a

    marked.options = "mine"  # type: ignore[attr-defined]
    assert job(marked).options.queue is None


def test_a_name_of_its_own() -> None:
    @job(name="mail.send")
    async def send(to: str) -> None: ...

    assert send.name == "mail.send"
    assert send("ann").type is send


def test_options_are_shared_and_overridden() -> None:
    slow = job(queue="slow", lease=120)

    @slow
    async def one(a: int) -> None: ...

    @slow(lease=60, name="second")
    async def two(a: int) -> None: ...

    assert (one.options.queue, one.options.lease_us) == ("slow", 120_000_000)
    assert (two.name, two.options.queue, two.options.lease_us) == ("second", "slow", 60_000_000)


def test_options_are_kept_in_the_domains_terms() -> None:
    def wait(attempt: int) -> float:
        return attempt * 2.0

    @job(timeout=timedelta(seconds=2), ttl=3, max_attempts=None, backoff=wait, retry_on=OSError, skip_queue=True)
    async def one(a: int) -> None: ...

    @job(backoff=Backoff.constant(3), abort_on=(KeyError, ValueError), strict_return=False)
    async def two(a: int) -> None: ...

    options = one.options
    assert (options.timeout_us, options.ttl_us, options.max_attempts) == (2_000_000, 3_000_000, None)
    assert (options.backoff, options.custom_backoff, options.retry_on) == (None, wait, (OSError,))
    assert (options.skip_queue, options.strict_return) == (True, None)
    assert (two.options.backoff, two.options.custom_backoff) == (Backoff.constant(3), None)
    assert (two.options.abort_on, two.options.strict_return) == ((KeyError, ValueError), False)
    assert two.options.max_attempts is UNSET


def test_a_context_may_be_positional_only() -> None:
    @job
    async def fetch(ctx: Context, /, url: str) -> None: ...

    assert fetch.takes_context
    assert fetch("u").arguments == {"url": "u"}


# ── refusals at decoration ──────────────────────────────────────────────────────────────────────────────────────


async def star(*args: int) -> None: ...


async def double_star(**kwargs: int) -> None: ...


async def positional_only(a: int, /) -> None: ...


async def positional_only_after_context(ctx: Context, a: int, /) -> None: ...


async def unannotated(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001, RUF100 # that is the point


async def anything(a: Any) -> None: ...


async def any_object(a: object) -> None: ...


async def late_context(a: int, ctx: Context) -> None: ...


async def mixed(ctx: Context) -> Result[int, int] | str:
    return ctx.result(1)


def generator(a: int) -> Iterator[int]:
    yield a


async def async_generator(a: int) -> AsyncIterator[int]:
    yield a


async def no_type(a: 3) -> None: ...  # type: ignore[valid-type]


async def no_syntax(a: "an int") -> None: ...  # type: ignore[valid-type]  # noqa: F722 # that is the point


class Mailer:
    async def send(self, to: str) -> None: ...

    async def no_self(to: str) -> None: ...  # type: ignore[misc]  # a function in a class body

    async def __call__(self, to: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (star, "star: *args has no names"),
        (double_star, "double_star: **kwargs leaves"),
        (positional_only, "'a' is positional-only"),
        (positional_only_after_context, "'a' is positional-only"),
        (unannotated, "annotate the first parameter 'a'"),
        (anything, "'a' may be anything"),
        (any_object, "'a' may be anything"),
        (late_context, "only the first parameter can be the Context; move 'ctx'"),
        (mixed, "mixes Result with plain values"),
        (generator, "a generator cannot be a job"),
        (async_generator, "a generator cannot be a job"),
        (no_syntax, "an annotation is no type"),
        (Mailer.send, "Mailer.send: a method cannot be a job"),
        (Mailer.no_self, "a method cannot be a job"),
        (Mailer().send, "takes a plain function"),
        (Mailer(), "takes a plain function"),
        (Mailer, "takes a plain function"),
        (lambda a: a, "a lambda has no name"),
        (functools.partial(star), "takes a plain function"),
        (print, "takes a plain function"),
        (add, "takes a plain function"),
    ],
)
def test_refused_functions(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        job(function)
    assert told in str(refusal.value)


async def async_one(a: int) -> int:
    return a


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_an_async_function_needs_the_loop(executor: Any) -> None:
    with pytest.raises(DefinitionError, match="runs plain functions"):
        job(executor=executor)(async_one)


def test_a_nested_function_cannot_run_in_a_process() -> None:
    def nested(a: int) -> int:
        return a

    assert job(nested).style == "thread"
    with pytest.raises(DefinitionError, match="cannot find a nested function"):
        job(executor="process")(nested)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeot": 3}, "'timeot' is no option of @job; did you mean 'timeout'? Allowed: abort_on, "),
        ({"name": ""}, "name is empty"),
        ({"name": 3}, "name=3 must be a string"),
        ({"queue": 3}, "queue=3 must be a string"),
        ({"priority": "high"}, "priority='high' must be a whole number"),
        ({"priority": True}, "priority=True must be a whole number"),
        ({"max_attempts": 0}, "max_attempts=0 must be at least 1"),
        ({"max_crashes": None}, "max_crashes=None must be a whole number"),
        ({"timeout": 0}, "timeout=0 must be more than 0 seconds"),
        ({"timeout": "3s"}, "timeout='3s' is not a duration"),
        ({"lease": 0.3}, "lease=0.3 must be at least 1 second"),
        ({"ttl": -1}, "ttl=-1 is negative"),
        ({"lease": float("inf")}, "lease=inf is not a duration"),
        ({"backoff": 3}, "backoff=3 must be a Backoff"),
        ({"retry_on": (OSError, "ValueError")}, "must be a tuple of exception classes"),
        ({"abort_on": 3}, "must be a tuple of exception classes"),
        ({"decide": "retry"}, "decide='retry' must be a function"),
        ({"options": {}}, "options={} must be a function"),
        ({"unique": "a"}, "unique='a' must be a function"),
        ({"log_context": 1}, "log_context=1 must be a function"),
        ({"on_event": 1}, "on_event=1 must be a function"),
        ({"skip_queue": 1}, "skip_queue=1 must be True or False"),
        ({"strict_return": None}, "strict_return=None must be True or False"),
        ({"codec": "json"}, "codec='json' must be a Codec"),
        ({"executor": "fiber"}, "executor='fiber' must be 'auto', 'thread' or 'process'"),
        ({"on_failure": "undo"}, "on_failure='undo' must be a job type or a job"),
    ],
)
def test_refused_options(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        job(**options)(async_one)
    assert told in str(refusal.value)
    assert "async_one" in str(refusal.value)


# ── refusals at first use ───────────────────────────────────────────────────────────────────────────────────────


class Opaque:
    pass


async def ambiguous(a: int, when: str | datetime) -> None: ...


async def opaque(a: Opaque) -> None: ...


async def opaque_inside(a: dict[str, list[Opaque]]) -> None: ...


async def bad_default(a: int, b: int = "1") -> None: ...  # type: ignore[assignment]


async def hidden(a: Decimal) -> None: ...


@dataclass
class HalfHidden:
    price: Decimal


async def hidden_inside(a: list[HalfHidden]) -> None: ...


async def opaque_result(a: int) -> Opaque:
    return Opaque()


async def nested_result(a: int) -> list[Result[int, int]]:
    return []


async def ambiguous_result(a: int) -> str | bytes:
    return b""


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (ambiguous, ["ambiguous: parameter 'when' cannot be decoded unambiguously", "or Structs told apart by a tag"]),
        (opaque, ["opaque: parameter 'a' is declared as Opaque, which cannot travel", "register_type"]),
        (no_type, ["parameter 'a' cannot be decoded unambiguously as 3"]),
        (opaque_inside, ["parameter 'a' is declared as Opaque"]),
        (bad_default, ["parameter 'b': the default '1' does not fit: expected `int`"]),
        (hidden, ["an annotation cannot be resolved", "'Decimal' is not defined", "TYPE_CHECKING"]),
        (hidden_inside, ["parameter 'a': an annotation cannot be resolved", "'Decimal' is not defined"]),
        (opaque_result, ["the result is declared as Opaque"]),
        (nested_result, ["the result is declared as Result"]),
        (ambiguous_result, ["the result cannot be decoded unambiguously"]),
    ],
)
def test_refused_annotations(function: Callable[..., Any], told: list[str]) -> None:
    job_type = job(function)
    for _ in range(2):
        with pytest.raises(DefinitionError) as refusal:
            job_type(1)
        assert all(each in str(refusal.value) for each in told), refusal.value


# ── annotations that resolve later ──────────────────────────────────────────────────────────────────────────────


@job
async def ahead(order: Order, sizes: "list[Size]") -> Order | None:  # noqa: UP037 # a string in strings' clothing
    return order if sizes else None


@dataclass
class Size:
    width: int


@dataclass
class Order:
    id: int
    lines: list[Line]


@dataclass
class Line:
    article: str


def test_forward_references_resolve_on_first_use() -> None:
    built = ahead(Order(1, [Line("rope")]), [Size(3)])
    assert ahead.decode_input(built.input) == {"order": Order(1, [Line("rope")]), "sizes": [Size(3)]}
    assert ahead.decode_result(ahead.encode_result(Order(2, []))) == Order(2, [])


def test_never_returning_is_returning_nothing() -> None:
    @job
    async def fails(a: int) -> NoReturn:
        raise ValueError(a)

    assert fails.encode_result(None) is None


def test_options_of_plain_functions_can_be_shared() -> None:
    heavy = job(executor="process", memory_mb=64)(queue="heavy")
    made = heavy(timeout=3)(plain)
    assert (made.style, made.options.queue, made.options.memory_mb, made.options.timeout_us) == (
        "process",
        "heavy",
        64,
        3 * SECOND,
    )
    assert job(executor="thread")(queue="heavy")(plain).style == "thread"


def plain(n: int) -> int:
    return n
