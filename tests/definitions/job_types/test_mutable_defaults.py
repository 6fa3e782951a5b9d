"""A default that can be changed: what one call does with it reaches no other."""

from __future__ import annotations

import dataclasses

from ropewalk import Backoff, Context, Retry, job
from tests.apps import MakeApp


@dataclasses.dataclass
class Basket:
    lines: list[str] = dataclasses.field(default_factory=list)


GIVEN = Basket()


@job(max_attempts=2, backoff=Backoff.constant(0))
async def collect(ctx: Context, customer: str, lines: list[str] = [], basket: Basket = GIVEN) -> list[str]:  # noqa: B006 # the point
    lines.append(customer)
    basket.lines.append(customer)
    if ctx.attempt == 1:
        raise Retry
    return [*lines, *basket.lines]


async def test_no_job_and_no_attempt_sees_what_a_handler_did_to_its_default(make_app: MakeApp) -> None:
    app = make_app(collect)
    built = [collect("ada", lines=[]), collect("bob"), collect("cyd", basket=Basket())]
    handles = await app.enqueue_many(built)
    async with app.running(concurrency=1):
        assert [await each.result(timeout=10) for each in handles] == [["ada"] * 2, ["bob"] * 2, ["cyd"] * 2]
        for each in handles:
            assert (await app.get(each.id)).arguments["lines"] == []
    assert Basket() == GIVEN


def test_a_job_that_was_built_holds_a_default_of_its_own() -> None:
    one, other = collect("ada"), collect("bob")
    assert one.arguments["lines"] == other.arguments["lines"]
    assert one.arguments["lines"] is not other.arguments["lines"]
    assert one.input == b'{"customer":"ada"}'


def test_what_is_changed_in_the_default_itself_changes_no_job() -> None:
    sizes = [1, 2]

    @job
    async def resize(a: int, sizes: list[int] = sizes) -> None: ...

    assert resize(1).input == b'{"a":1}'
    sizes.append(3)
    assert resize.decode_input(b'{"a":1}') == {"a": 1, "sizes": [1, 2]}
    assert resize(1, sizes=[1, 2]).input == b'{"a":1}'
