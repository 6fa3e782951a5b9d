"""`ropewalk worker shop:mail`: a worker made in code, with everything that no option can say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ropewalk import App, State
from tests.cli import shop
from tests.cli.conftest import Run, Start, lingering, members, until

OPTIONS = [
    *(["--queue", "slow"], ["--type", "add"], ["--tenant", "acme"], ["--concurrency", "10"]),
    *(["--grace", "30"], ["--lease", "30"], ["--no-scheduler"]),
]


def test_it_is_what_its_code_says(start: Start, app: App, url: str) -> None:
    process = start(name="fast")
    elsewhere = app.sync.enqueue(shop.add(0, b=0))
    died = app.sync.enqueue(shop.divide(1, b=0), queue="fast")
    until(lambda: app.sync.get(died.id).run == 2 and app.sync.get(died.id).terminal, "it is redriven, and dies again")
    [card] = app.sync.workers()
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out == f"worker {card.id} on {url} (survives power loss): add, divide; 3 at a time\n"
    assert (card.queues, card.types, card.concurrency) == (("fast",), ("add", "divide"), 3)
    assert f"queued type=divide job={died.id} attempt=0 message='redriven'\n" in err
    assert app.sync.get(elsewhere.id).state is State.SCHEDULED


def test_each_of_several_processes_has_its_own(start: Start, app: App, url: str) -> None:
    process = start("--processes", "2", name="fast")
    until(lambda: len(app.sync.workers()) == 2, "both are there")
    cards = app.sync.workers()
    process.terminate()
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    said, _, rest = out.removeprefix("workers ").partition(" on ")
    assert set(said.split(", ")) == {card.id for card in cards}
    assert rest == f"{url} (survives power loss): add, divide; 3 at a time each\n"
    assert {(card.queues, card.concurrency) for card in cards} == {(("fast",), 3)}


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_workers_that_code_has_made_for_several_processes(options: list[str], start: Start, app: App) -> None:
    process = start(*options, name="several")
    until(lambda: len(app.sync.workers()) == 2, "both are there")
    cards = app.sync.workers()
    assert {card.pid for card in cards} == set(members(process))
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out.endswith(": add; 4 at a time each\n")
    assert "INFO worker-2: drained" in err


@pytest.mark.parametrize(("options", "each"), [([], ""), (["--processes", "2"], " each")])
def test_no_bound_is_not_told_as_a_number(options: list[str], each: str, start: Start) -> None:
    process = start(*options, name="unbounded")
    assert process.stdout is not None
    assert process.stdout.readline().endswith(f": add; any number at a time{each}\n")


def test_no_bound_in_json(start: Start, app: App) -> None:
    process = start("--json", name="unbounded")
    until(app.sync.workers, "it is there")
    process.terminate()
    banner = json.loads(process.communicate(timeout=20)[0])
    assert (banner["types"], banner["concurrency"], banner["grace_seconds"]) == (["add"], None, 30)


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_its_grace_is_what_a_drain_goes_by(options: list[str], start: Start, app: App, place: Path) -> None:
    process = start(*options, name="impatient")
    job_id = lingering(app, "linger", place)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_its_grace_is_what_the_drain_is_watched_by(start: Start, app: App, place: Path) -> None:
    process = start(name="impatient")
    lingering(app, "block_the_loop", place)
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "draining: no more jobs are started, and running jobs have 0.1 s to finish\n" in err
    assert "error: the worker did not come to an end within 5.1 s: the process ends without it" in err


@pytest.mark.parametrize("given", OPTIONS, ids=lambda given: given[0])
def test_an_option_that_would_set_it_too_is_refused(given: list[str], ropewalk: Run) -> None:
    answer = ropewalk("worker", "shop:fast", *given)
    said = f"shop:fast is a worker with settings of its own: leave {given[0]} out, or name the app"
    assert (answer.code, answer.out, answer.err) == (2, "", f"error: {said}\n")


def test_all_that_are_too_much_are_said_once(ropewalk: Run) -> None:
    answer = ropewalk("worker", "shop:fast", "--processes", "2", "--grace", "1", "--queue", "a", "--queue", "b")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith("settings of its own: leave --queue, --grace out, or name the app\n")
    assert answer.err.count("\n") == 1


def test_a_store_inside_one_process_is_refused_to_several(ropewalk: Run) -> None:
    answer = ropewalk("worker", "shop:fast", "--processes", "2", ROPEWALK_URL="memory://")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: memory:// lives inside one process: --processes needs a store ")
