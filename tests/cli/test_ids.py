"""H5: a command takes any part of an id that means one job."""

from __future__ import annotations

import re

import pytest

from ropewalk import App
from tests.cli import shop
from tests.cli.conftest import Run, Start, until

COMMANDS = (("jobs", "show"), ("jobs", "cancel"), ("why",), ("workflow", "show"))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("part", ["order-77-alpha", "order-77", "alpha", "77-alpha"])
def test_a_part_that_means_one_job(ropewalk: Run, app: App, command: tuple[str, ...], part: str) -> None:
    app.sync.enqueue(shop.add(1, b=2), id="order-77-alpha")
    app.sync.enqueue(shop.add(1, b=2), id="order-78-beta")
    done = ropewalk(*command, part)
    assert (done.code, done.err) == (0, "")
    assert "beta" not in done.out


@pytest.mark.parametrize("command", [*COMMANDS, ("jobs", "retry")])
@pytest.mark.parametrize("part", ["order-7", "beta"])
def test_one_that_means_several_is_refused_and_names_them(
    ropewalk: Run, app: App, command: tuple[str, ...], part: str
) -> None:
    app.sync.enqueue(shop.add(1, b=2), id="order-77-beta")
    app.sync.enqueue(shop.divide(1, b=2), id="order-78-beta", delay=60)
    done = ropewalk(*command, part)
    assert (done.code, done.out) == (2, "")
    assert f"'{part}' is part of 2 ids of jobs, give a longer part: " in done.err
    assert "order-77-beta (add, scheduled)" in done.err
    assert "order-78-beta (divide, delayed)" in done.err
    states = app.sync.states(["order-77-beta", "order-78-beta"])
    assert [state.value for state in states.values()] == ["scheduled", "delayed"]


def test_a_whole_id_is_meant_even_where_another_begins_with_it(ropewalk: Run, app: App) -> None:
    app.sync.enqueue(shop.add(1, b=2), id="order-7")
    app.sync.enqueue(shop.add(1, b=2), id="order-77")
    assert ropewalk("jobs", "show", "order-7", "--json").json["id"] == "order-7"


def test_what_is_part_of_no_id_is_not_found(ropewalk: Run, app: App) -> None:
    app.sync.enqueue(shop.add(1, b=2))
    done = ropewalk("jobs", "show", "nothing")
    assert (done.code, done.err) == (
        1,
        "error: no job 'nothing' for this tenant (never submitted, or deleted after its retention)\n",
    )


def test_a_mistake_in_one_of_several_ids_leaves_the_others_alone(ropewalk: Run, app: App) -> None:
    for name in ("order-1", "order-2", "bill-1"):
        app.sync.enqueue(shop.add(1, b=2), id=name)
    assert ropewalk("jobs", "cancel", "bill", "order").code == 2
    assert app.sync.get("bill-1").state.value == "scheduled"


def test_the_endings_that_a_tree_prints(ropewalk: Run, app: App) -> None:
    job = app.sync.enqueue(shop.add(1, b=2))
    app.sync.enqueue(shop.add(3, b=4))
    match = re.match(r"add (\S{8}) ", ropewalk("workflow", "show", job.id).out)
    assert match is not None
    assert ropewalk("jobs", "show", match[1], "--json").json["id"] == job.id


def test_a_part_of_a_workers_id(ropewalk: Run, start: Start, app: App) -> None:
    process = start()
    until(app.sync.workers, "it is there")
    [card] = app.sync.workers()
    assert ropewalk("workers", "drain", card.id[:6]).out == f"{card.id}  asked to drain\n"
    process.communicate(timeout=20)
    assert process.returncode == 0
