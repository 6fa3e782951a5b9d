"""H5, T3: `ropewalk schedules` shows schedules and changes them."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs

from ropewalk import App, InvalidInput, NotFound, job
from ropewalk.cli.group import root
from ropewalk.cli.worker.command import worker
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.schedules import ScheduleChange


@job
async def report(kind: str) -> str:
    return kind


@job
async def bill(amount: Decimal, day: date) -> None: ...


def tides(after: datetime) -> datetime | None:
    return after + timedelta(hours=6)


def make(fire: datetime) -> None:
    return None


@pytest.fixture
async def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with App(url, jobs=[report], functions=[tides, make]) as app:
        await app.create_schedule(
            "nightly", cron="30 3 * * *", timezone="Asia/Tokyo", job=report("sales"), missed="once"
        )
        await app.create_schedule("tides", next=tides, run=make)
        await app.create_schedule("bell\a", every=3600, job=report("x"))
        await app.edit_schedule("tides", missed="all")
        await app.tenant("acme").create_schedule("theirs", every=60, job=report("x"))
    return url


def ropewalk(url: str, *arguments: str) -> str:
    printed = CliRunner().invoke(root, ["schedules", *arguments, "--url", url], catch_exceptions=False)
    assert printed.exit_code == 0
    return printed.output


def document(url: str, *arguments: str) -> Any:
    return json.loads(ropewalk(url, *arguments, "--json"))


def lines(url: str, *arguments: str) -> list[str]:
    """With dates and distances that do not change from day to day."""
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", ropewalk(url, *arguments))
    return [re.sub(r"\d\d:\d\d:\d\d UTC", "TIME", line) for line in text.splitlines()]


def test_list(url: str) -> None:
    header, bell, nightly, tidal = lines(url, "list")
    assert header.split() == ["NAME", "WHEN", "WORK", "STATE", "NEXT", "IN"]
    assert re.fullmatch(r"bell\\x07 +every 1 h +report +active +DATE TIME +.*", bell)
    assert re.fullmatch(r"nightly +30 3 \* \* \* \(Asia/Tokyo\) +report +active +DATE 03:30:00 JST +\S+ \w+", nightly)
    assert re.fullmatch(r"tides +at the times of tides +run make +active +DATE TIME +.*", tidal)
    assert [each["name"] for each in document(url, "list")["schedules"]] == ["bell\a", "nightly", "tides"]
    assert [each["name"] for each in document(url, "list", "--tenant", "acme")["schedules"]] == ["theirs"]
    assert ropewalk(url, "list", "--tenant", "nobody") == "no schedules\n"


def test_show(url: str) -> None:
    assert lines(url, "show", "nightly") == [
        "name        nightly",
        "when        30 3 * * * (Asia/Tokyo)",
        "work        report",
        "queue       default",
        'arguments   {"kind":"sales"}',
        "missed      once",
        "state       active",
        "last fire   never",
        "next fires  DATE 03:30:00 JST",
        *["            DATE 03:30:00 JST"] * 4,
    ]
    tidal = lines(url, "show", "tides")
    assert "edited      at run time: code does not change it until reset=True" in tidal
    assert "generation  2" in tidal
    assert tidal[-1] == "next fires  DATE TIME", "only a process that has the function knows more"
    shown = document(url, "show", "nightly")
    assert (shown["cron"], shown["arguments"], len(shown["upcoming"])) == ("30 3 * * *", {"kind": "sales"}, 5)


def test_next(url: str) -> None:
    header, *fires = lines(url, "next", "nightly", "--count", "3")
    assert header.split() == ["FIRE", "UTC", "IN"]
    assert [re.sub(r"  \S+ \w+$", "", fire) for fire in fires] == ["DATE 03:30:00 JST  DATE 18:30:00"] * 3
    assert lines(url, "next", "bell\a", "--count", "1")[0].split() == ["FIRE", "IN"]
    times = [datetime.fromisoformat(each) for each in document(url, "next", "nightly", "--count", "3")["upcoming"]]
    assert [later - times[0] for later in times] == [timedelta(days=day) for day in range(3)]


def test_pause_resume_and_delete(url: str) -> None:
    assert ropewalk(url, "pause", "nightly", "tides") == "nightly  paused\ntides  paused\n"
    assert "paused" in lines(url, "list")[2]
    assert [each["paused"] for each in document(url, "resume", "nightly", "tides")["schedules"]] == [False, False]
    assert ropewalk(url, "resume", "nightly") == "nightly  resumed\n"
    assert ropewalk(url, "delete", "nightly") == "nightly  deleted\n"
    assert document(url, "delete", "tides") == {"deleted": ["tides"]}
    with pytest.raises(NotFound, match="no schedule 'nightly' for this tenant"):
        ropewalk(url, "delete", "nightly")


@pytest.mark.parametrize("verb", ["pause", "delete"])
def test_an_unknown_name_does_not_keep_the_others_from_being_changed(url: str, verb: str) -> None:
    words = ["schedules", verb, "nope", "nightly", "neither", "tides", "--url", url]
    result = CliRunner().invoke(root, words)
    assert isinstance(result.exception, NotFound)
    assert "'neither'" in str(result.exception)
    assert "'nope'" in result.output
    shown = ropewalk(url, "list")
    assert ("nightly" in shown, "tides" in shown) == ((verb == "pause"),) * 2
    assert shown.count("paused") == (2 if verb == "pause" else 0)


def test_trigger(url: str) -> None:
    assert re.fullmatch(r"[0-9a-f-]{36}  queued \(report\)\n", ropewalk(url, "trigger", "nightly"))
    assert document(url, "trigger", "nightly")["arguments"] == {"kind": "sales"}
    with pytest.raises(InvalidInput, match="made by the function 'make', which this app does not have"):
        ropewalk(url, "trigger", "tides")


def test_one_that_has_ended(url: str) -> None:
    async def end() -> None:
        async with App(url) as app:
            [read] = (await SCHEDULES.of(app._app_state.store).get_schedules("default", ["tides"])).schedules
            ended = structs.replace(read.schedule, next_fire=None)
            await SCHEDULES.of(app._app_state.store).change_schedules([ScheduleChange(before=read, after=ended)])

    asyncio.run(end())
    assert ropewalk(url, "next", "tides") == "tides has ended and will not fire again\n"
    assert "ended" in lines(url, "list")[-1]


def test_a_worker_that_leaves_schedules_to_others() -> None:
    """Also one in a process of its own."""
    options = WorkerOptions(
        path="shop:app",
        queues=(),
        types=(),
        tenants=(),
        concurrency=1,
        grace=1,
        lease=None,
        scheduler=False,
        log_level="info",
    )
    assert worker.make_context("worker", options.arguments()).params["no_scheduler"] is True


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app that can be imported, on the store of `url`."""
    code = (
        "from ropewalk import App\n"
        "from tests.cli.test_schedules import bill, make, report, tides\n"
        f"app = App('sqlite:///{tmp_path}/jobs.db', jobs=[report, bill], functions=[tides, make])\n"
    )
    (tmp_path / "reports_app.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "reports_app", raising=False)
    return "reports_app:app"


def by_app(reports: str, *arguments: str) -> Any:
    printed = CliRunner().invoke(
        root, ["schedules", *arguments, "--app", reports, "--json"], catch_exceptions=False, env={"ROPEWALK_URL": None}
    )
    assert printed.exit_code == 0
    return json.loads(printed.output)


def test_create(url: str, reports: str) -> None:
    words = ["create", "weekly", "--cron", "0 9 * * MON", "--timezone", "Europe/Oslo", "--missed", "once"]
    words += ["--type", "report", "--arguments", '{"kind": "tax"}', "--queue", "slow", "--priority", "-5"]
    words += ["--delay", "10s", "--max-attempts", "2", "--timeout", "5min", "--ttl", "1h", "--tag", "of=tax"]
    words += ["--idempotency-key", "weekly"]
    made = by_app(reports, *words)
    assert (made["cron"], made["timezone"], made["missed"], made["dry_run"]) == (
        "0 9 * * MON",
        "Europe/Oslo",
        "once",
        False,
    )
    assert (made["job_type"], made["queue"], made["arguments"]) == ("report", "slow", {"kind": "tax"})
    assert made["options"] == {
        "priority": -5,
        "max_attempts": 2,
        "tags": {"of": "tax"},
        "delay": 10.0,
        "timeout": 300.0,
        "ttl": 3600.0,
        "idempotency_key": "weekly",
    }
    assert document(url, "show", "weekly")["generation"] == 1
    assert by_app(reports, "create", "tidal", "--next", "tides", "--run", "make")["run"] == "make"
    assert by_app(reports, "create", "pulse", "--every", "90s", "--type", "report", "--arguments", '{"kind": ""}')[
        "every"
    ]


def test_a_dry_run_shows_the_next_fires_and_stores_nothing(url: str, reports: str) -> None:
    words = ["schedules", "create", "daily", "--cron", "0 4 * * *", "--timezone", "Asia/Tokyo", "--type", "report"]
    words += ["--arguments", '{"kind": "x"}', "--app", reports, "--dry-run"]
    printed = CliRunner().invoke(root, words, catch_exceptions=False, env={"ROPEWALK_URL": None})
    told = re.sub(r"\d{4}-\d\d-\d\d", "DATE", printed.output).splitlines()
    assert told[0] == "daily  would be created; nothing is stored:"
    assert told[-5:] == ["next fires  DATE 04:00:00 JST", *["            DATE 04:00:00 JST"] * 4]
    shown = document(url, "edit", "nightly", "--cron", "0 5 * * *", "--queue", "slow", "--dry-run")
    assert (shown["cron"], shown["timezone"], shown["queue"], shown["dry_run"]) == (
        "0 5 * * *",
        "Asia/Tokyo",
        "slow",
        True,
    )
    assert [each["name"] for each in document(url, "list")["schedules"]] == ["bell\a", "nightly", "tides"]
    assert document(url, "show", "nightly")["generation"] == 1


def test_edit(url: str, reports: str) -> None:
    assert ropewalk(url, "edit", "nightly", "--queue", "slow", "--priority", "3").startswith("nightly  edited:\n")
    assert by_app(reports, "edit", "nightly", "--arguments", '{"kind": "load"}')["generation"] == 3
    left = document(url, "edit", "nightly", "--every", "1h", "--missed", "all")
    assert (left["queue"], left["options"], left["arguments"]) == ("slow", {"priority": 3}, {"kind": "load"})
    assert (left["cron"], left["every"], left["missed"], left["overridden"]) == (None, "PT3600S", "all", True)
    replaced = by_app(reports, "edit", "nightly", "--type", "report", "--arguments", '{"kind": "new"}')
    assert (replaced["queue"], replaced["options"], replaced["arguments"]) == ("default", {}, {"kind": "new"})


def test_arguments_are_read_by_the_annotations_of_the_type(reports: str) -> None:
    given = {"amount": "1.50", "day": "2026-01-01"}
    words = ["--every", "1h", "--type", "bill", "--arguments", json.dumps(given)]
    assert by_app(reports, "create", "bills", *words)["arguments"] == given
    given = {"amount": "2", "day": "2026-01-02"}
    assert by_app(reports, "edit", "bills", "--arguments", json.dumps(given))["arguments"] == given
    given["amount"] = "3"
    assert by_app(reports, "edit", "bills", "--arguments", '{"amount": "3"}')["arguments"] == given
    shown = by_app(reports, "show", "bills")["arguments"]
    assert by_app(reports, "edit", "bills", "--arguments", json.dumps(shown))["arguments"] == given
    for words in (["create", "more", "--every", "1h", "--type", "bill"], ["edit", "bills"]):
        wrong = ["--arguments", '{"amount": "2", "day": "soon"}', "--app", reports]
        refused = CliRunner().invoke(root, ["schedules", *words, *wrong], env={"ROPEWALK_URL": None})
        assert "bill: argument 'day'" in str(refused.exception)


def test_a_cron_expression_after_an_interval_is_not_silently_read_in_utc(url: str) -> None:
    assert document(url, "edit", "nightly", "--every", "1h")["timezone"] is None
    with pytest.raises(
        InvalidInput, match=r"schedule that had no time zone: .* with timezone, like 'Europe/Oslo' or 'UTC'"
    ):
        ropewalk(url, "edit", "nightly", "--cron", "30 3 * * *")
    assert document(url, "show", "nightly")["every"] == "PT3600S"
    edited = document(url, "edit", "nightly", "--cron", "30 3 * * *", "--timezone", "Asia/Tokyo")
    assert edited["timezone"] == "Asia/Tokyo"


def test_the_help_of_edit_says_that_tags_are_replaced() -> None:
    printed = CliRunner().invoke(root, ["schedules", "edit", "--help"])
    assert "An edit replaces all tags" in " ".join(printed.output.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["edit", "nightly"], "there is nothing to change in schedule 'nightly'"),
        (["edit", "nightly", "--cron", "61 * * * *"], "minute '61' at character 1 is out of range"),
        (
            ["edit", "nightly", "--timezone", "Oslo"],
            "timezone='Oslo' is not in the tz database: give a name like 'Europe/Oslo' or 'UTC' (",
        ),
        (["edit", "nightly", "--max-attempts", "0"], "max_attempts=0"),
        (["edit", "tides", "--queue", "slow"], "made by the function 'make', so using= cannot change them"),
        (["edit", "nobody", "--every", "60"], "no schedule 'nobody' for this tenant"),
        (["create", "nightly", "--every", "60", "--run", "make"], "run='make' is not registered with this app"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_option(url: str, words: list[str], told: str) -> None:
    with pytest.raises((InvalidInput, NotFound), match=re.escape(told)):
        ropewalk(url, *words)
    assert document(url, "show", "nightly")["generation"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create", "x", "--every", "soon", "--run", "make"], "'soon' is not a duration like 90s, 30min"),
        (["create", "x", "--every", "60", "--type", "report"], "--type needs --app, which knows the job type"),
        (["edit", "nightly", "--arguments", "{}"], "--arguments needs --app, which knows the job type"),
        (["edit", "nightly", "--arguments", "[1]"], "--arguments '[1]' is not a JSON object like"),
        (["edit", "nightly", "--tag", "tax"], "--tag 'tax' is not NAME=VALUE"),
        (
            ["create", "x", "--every", "60", "--run", "make", "--queue", "slow"],
            "there are options of a job, but no job type: give --type",
        ),
        (["create", "x", "--every", "60"], "no option says what it enqueues: give --type or --run"),
        (["create", "x", "--run", "make"], "no option says when it fires: give --cron or --every or --next"),
        (["edit", "nightly", "--missed", "twice"], "'twice' is not one of 'skip', 'once', 'all'"),
    ],
)
def test_wrong_usage(url: str, words: list[str], told: str) -> None:
    printed = CliRunner().invoke(root, ["schedules", *words, "--url", url], catch_exceptions=False)
    assert printed.exit_code == 2
    assert told in " ".join(printed.output.split())
