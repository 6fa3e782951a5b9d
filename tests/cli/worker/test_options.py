"""What was given on the command line is what a worker is made with, also in a process of its own; nothing else is."""

from __future__ import annotations

import pytest

from ropewalk import App
from ropewalk.cli.worker.command import worker
from ropewalk.cli.worker.options import WorkerOptions
from tests.cli import shop


def told(*words: str) -> WorkerOptions:
    """As the command itself reads them."""
    given = worker.make_context("worker", list(words)).params
    scheduler = not given.pop("no_scheduler")
    del given["processes"], given["as_json"]
    return WorkerOptions(scheduler=scheduler, **given)


EVERYTHING = [
    *("shop:app", "--queue=mail", "--queue=a b", "--type=add", "--tenant=acme", "--concurrency=2", "--grace=0"),
    *("--lease=1.5", "--no-scheduler", "--log-level=debug", "--log-format=json"),
]


@pytest.mark.parametrize("words", [["shop:app"], EVERYTHING])
def test_a_process_of_its_own_is_told_the_same(words: list[str]) -> None:
    options = told(*words)
    assert told(*options.arguments()) == options


def test_what_was_not_given_is_left_to_others() -> None:
    options = told("shop:app")
    assert (options.settings(), options.given()) == ({}, [])
    assert options.arguments() == ["--log-level=info", "--log-format=text", "--", "shop:app"]


def test_what_was_given_is_the_workers() -> None:
    options = told(*EVERYTHING)
    assert options.given() == [
        *("--queue", "--type", "--tenant", "--concurrency", "--grace", "--lease", "--no-scheduler")
    ]
    made = App("memory://", jobs=shop.TYPES).worker(**options.settings())
    assert (made.types, made.concurrency, made.grace_seconds) == (("add",), 2, 0)
