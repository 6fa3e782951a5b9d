"""Which store: --app or --url, the environment behind them, and what cannot be looked at from here."""

from __future__ import annotations

from pathlib import Path

from ropewalk import App
from tests.cli import shop
from tests.cli.conftest import Run


def test_no_target_at_all_is_misuse(ropewalk: Run) -> None:
    answer = ropewalk("jobs", "list", ROPEWALK_URL="")
    assert answer.code == 2
    assert answer.err.startswith("error: no store is named: give --app module:app or --url URL, or set $ROPEWALK_APP")


def test_app_and_url_together_are_misuse(ropewalk: Run, url: str) -> None:
    answer = ropewalk("jobs", "list", "--app", "shop:app", "--url", url)
    assert answer.code == 2
    assert answer.err.startswith("error: an app has a store of its own: give --app or --url, not both")


def test_the_environment_names_the_app(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue(shop.add(1, b=2)).id
    assert job_id in ropewalk("jobs", "list", ROPEWALK_APP="shop:app").out


def test_a_typed_url_beats_the_apps_of_the_environment(ropewalk: Run, app: App, url: str) -> None:
    job_id = app.sync.enqueue(shop.add(1, b=2)).id
    answer = ropewalk("jobs", "list", "--url", url, ROPEWALK_APP="nowhere:app", ROPEWALK_URL="memory://")
    assert (answer.code, job_id in answer.out) == (0, True)


def test_a_tenant_sees_its_own_jobs_only(ropewalk: Run, app: App) -> None:
    ours = app.sync.enqueue(shop.add(1, b=2)).id
    theirs = app.sync.tenant("acme").enqueue(shop.add(3, b=4)).id
    assert [job["id"] for job in ropewalk("jobs", "list", "--json").json["jobs"]] == [ours]
    assert [job["id"] for job in ropewalk("jobs", "list", "--tenant", "acme", "--json").json["jobs"]] == [theirs]
    assert ropewalk("jobs", "show", theirs).code == 1


def test_looking_does_not_make_a_store(ropewalk: Run, place: Path) -> None:
    answer = ropewalk("jobs", "list", "--url", f"sqlite:///{place}/typo.db")
    assert answer.code == 3
    assert answer.err == (f"error: sqlite:///{place}/typo.db: there is no file {place}/typo.db; is the path right?\n")
    assert list(place.iterdir()) == []


def test_a_file_of_another_program_is_refused(ropewalk: Run, place: Path) -> None:
    (place / "letter.db").write_text("Dear Ada,\n" * 100)
    answer = ropewalk("jobs", "list", "--url", f"sqlite:///{place}/letter.db")
    assert answer.code == 3
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1


def test_memory_is_out_of_reach(ropewalk: Run) -> None:
    answer = ropewalk("why", "some-id", "--url", "memory://")
    assert answer.code == 2
    assert "which only its own process can reach" in answer.err


def test_a_url_nobody_knows_is_misuse(ropewalk: Run) -> None:
    answer = ropewalk("jobs", "list", "--url", "mysql://ada:secret@localhost/jobs")
    assert answer.code == 2
    assert "unknown scheme" in answer.err
    assert "secret" not in answer.err
