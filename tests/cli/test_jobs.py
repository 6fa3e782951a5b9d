"""`ropewalk jobs` and `ropewalk why`, on a store with jobs in every kind of state."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from ropewalk import App, Context, job
from tests.cli import shop
from tests.cli.conftest import Run

ANSI = "\x1b"


@job(max_attempts=1)
async def deliver(ctx: Context) -> list[str]:
    """Breaks in its first run, after its steps."""
    done = [await ctx.step(name, "{} in run {}".format, name, ctx.run) for name in ("pack", "load")]
    if ctx.run == 1:
        raise ValueError("the van broke down")
    return done


class Jobs:
    """One of each."""

    def __init__(self, app: App) -> None:
        self.added = app.sync.enqueue(shop.add(1, b=2), tags={"customer": "42"}).id
        self.divided = app.sync.enqueue(shop.divide(1, b=0), workflow_id="sums").id
        app.sync.portal.call(drained(app))
        self.later = app.sync.enqueue(shop.add(3, b=4), delay=3600, queue="slow").id
        self.waiting = app.sync.enqueue(shop.linger("nowhere"), correlation_id="order-7").id


async def drained(app: App) -> None:
    async with app.worker() as worker:
        await worker.idle()


@pytest.fixture
def jobs(app: App) -> Jobs:
    return Jobs(app)


def ids(run: Run, *options: str) -> list[str]:
    answer = run("jobs", "list", "--json", *options)
    assert (answer.code, answer.err) == (0, "")
    return [job["id"] for job in answer.json["jobs"]]


def test_list_is_a_table_with_aligned_columns(ropewalk: Run, jobs: Jobs) -> None:
    answer = ropewalk("jobs", "list")
    assert (answer.code, answer.err) == (0, "")
    assert ANSI not in answer.out
    header, *rows = answer.out.splitlines()
    assert header.split() == ["ID", "TYPE", "QUEUE", "STATE", "ATTEMPT", "AGE"]
    assert [row.split()[0] for row in rows] == [jobs.waiting, jobs.later, jobs.divided, jobs.added]
    starts = [header.index(name) for name in header.split()]
    assert all(row[start - 1] == " " != row[start] for row in rows for start in starts[1:])
    assert [row[starts[3] :].split()[0] for row in rows] == ["scheduled", "delayed", "dead_letter", "completed"]


def test_list_filters(ropewalk: Run, jobs: Jobs) -> None:
    assert ids(ropewalk, "--state", "completed", "--state", "dead_letter") == [jobs.divided, jobs.added]
    assert ids(ropewalk, "--type", "add", "--queue", "default") == [jobs.added]
    assert ids(ropewalk, "--tag", "customer=42") == [jobs.added]
    assert ids(ropewalk, "--tag", "customer=43") == []
    assert ids(ropewalk, "--workflow", "sums") == [jobs.divided]
    assert ids(ropewalk, "--text", "order-") == [jobs.waiting]


def test_a_mistyped_type_is_warned_of_where_the_app_knows_its_types(ropewalk: Run, jobs: Jobs) -> None:
    told = "warning: no job type named 'ad' is registered here; did you mean 'add'? Registered: "
    for words in (["jobs", "list"], ["stats"], ["limits", "set", "--concurrency", "1"], ["limits", "remove"]):
        answer = ropewalk(*words, "--type", "ad", "--app", "shop:app")
        assert (answer.code, answer.err.count("\n")) == (0, 1)
        assert answer.err.startswith(told)
    assert ropewalk("jobs", "list", "--type", "add", "--app", "shop:app").err == ""
    assert ropewalk("jobs", "list", "--type", "ad").err == "", "without the app nobody knows"


def test_list_page_by_page(ropewalk: Run, jobs: Jobs) -> None:
    first = ropewalk("jobs", "list", "--limit", "3")
    cursor = re.search(r"^next page: --cursor (\S+)$", first.out, re.MULTILINE)
    assert cursor is not None
    assert ids(ropewalk, "--limit", "3", "--cursor", cursor[1]) == [jobs.added]
    assert ropewalk("jobs", "list", "--cursor", "nonsense").code == 2


def test_show_by_url_and_by_app(ropewalk: Run, jobs: Jobs) -> None:
    for target in ([], ["--app", "shop:app"]):
        answer = ropewalk("jobs", "show", jobs.added, *target)
        assert (answer.code, answer.err) == (0, "")
        shown = dict(line.split(None, 1) for line in answer.out.splitlines())
        assert (shown["state"], shown["attempt"], shown["result"]) == ("completed", "1 of 3", "3")
        assert (shown["arguments"], shown["tags"]) == ('{"a":1,"b":2}', "customer=42")


def test_show_tells_the_error_and_the_history(ropewalk: Run, jobs: Jobs) -> None:
    answer = ropewalk("jobs", "show", jobs.divided, "--history")
    assert "ZeroDivisionError: division by zero" in answer.out
    assert "return a / b" in answer.out
    history = answer.out.partition("REV")[2].splitlines()[1:]
    assert [line.split()[3] for line in history] == ["queued", "started", "bury"]


def test_show_as_json(ropewalk: Run, jobs: Jobs) -> None:
    plain = ropewalk("jobs", "show", jobs.added, "--json").json
    assert "history" not in plain
    assert (plain["id"], plain["state"], plain["result"]) == (jobs.added, "completed", 3)
    told = ropewalk("jobs", "show", jobs.added, "--history", "--json").json
    assert [entry["kind"] for entry in told["history"]] == ["queued", "started", "complete"]
    for moment in (told["created_at"], told["finished_at"], told["history"][0]["at"]):
        assert datetime.fromisoformat(moment).utcoffset() is not None


def test_stored_text_cannot_speak_to_the_terminal(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue(shop.add(1, b=2), tags={"note": "\x1b]0;owned\x07"}, queue="a\x1b[31mb").id
    for answer in (ropewalk("jobs", "list"), ropewalk("jobs", "show", job_id)):
        assert answer.code == 0
        assert ANSI not in answer.out
        assert "a\\x1b[31mb" in answer.out


def test_missing_jobs(ropewalk: Run, jobs: Jobs) -> None:
    for command in (["jobs", "show"], ["why"]):
        answer = ropewalk(*command, "missing")
        assert (answer.code, answer.out) == (1, "")
        assert answer.err.startswith("error: no job 'missing' for this tenant")
        assert answer.err.count("\n") == 1


def test_retry(ropewalk: Run, jobs: Jobs, app: App) -> None:
    answer = ropewalk("jobs", "retry", jobs.divided)
    assert (answer.code, answer.out, answer.err) == (0, f"{jobs.divided}  queued again\n", "")
    assert (app.sync.get(jobs.divided).state.value, app.sync.get(jobs.divided).run) == ("scheduled", 2)


def test_retry_does_what_it_can_and_says_what_it_cannot(ropewalk: Run, jobs: Jobs, app: App) -> None:
    answer = ropewalk("jobs", "retry", "missing", jobs.added, jobs.divided)
    assert (answer.code, answer.out) == (1, f"{jobs.divided}  queued again\n")
    assert answer.err.splitlines() == [
        "error: missing: no such job for this tenant",
        f"error: {jobs.added} cannot be retried (state_completed): only failed and dead_letter jobs can be retried",
    ]
    assert [each["status"] for each in ropewalk("jobs", "retry", "missing", "--json").json["jobs"]] == ["not_found"]


def test_retry_of_a_job_whose_dependencies_are_unmet(ropewalk: Run, app: App) -> None:
    parent, child = shop.divide(1, b=0), shop.add(1, b=2)
    app.sync.enqueue_many([parent, child.using(depends_on=parent)])
    app.sync.portal.call(drained(app))
    answer = ropewalk("jobs", "retry", child.id)
    told = "it never started and waits for a job that failed; retry that one first"
    assert answer.code == 1
    assert answer.err == f"error: {child.id} cannot be retried (unmet_dependencies): {told}\n"


def test_retry_with_other_arguments(ropewalk: Run, jobs: Jobs, app: App) -> None:
    answer = ropewalk("jobs", "retry", jobs.divided, "--arguments", '{"a": 1, "b": "x"}', "--app", "shop:app")
    assert (answer.code, answer.out) == (2, ""), "the arguments are checked as in a call"
    assert "argument 'b'" in answer.err
    assert ropewalk("jobs", "retry", jobs.divided, "--arguments", "[1]", "--app", "shop:app").code == 2
    assert ropewalk("jobs", "retry", jobs.divided, "--arguments", '{"a": 1, "b": 2}', "--app", "shop:app").code == 0
    assert app.sync.get(jobs.divided).arguments == {"a": 1, "b": 2}


def test_retry_from_a_step(ropewalk: Run, jobs: Jobs, url: str) -> None:
    app = App(url, jobs=[deliver])
    with app.sync as client:
        parcel = client.enqueue(deliver())
        client.portal.call(drained(app))
        answer = ropewalk("jobs", "retry", parcel.id, "--from-step", "load")
        assert (answer.code, answer.out) == (0, f"{parcel.id}  queued again\n")
        client.portal.call(drained(app))
        assert parcel.result(timeout=10) == ["pack in run 1", "load in run 2"]
    answer = ropewalk("jobs", "retry", jobs.divided, "--from-step", "load")
    told = "it has no stored step of this name: name a step that its handler has finished"
    assert (answer.code, answer.err) == (1, f"error: {jobs.divided} cannot be retried (no_such_step): {told}\n")


BILL = {
    "amount": Decimal("-1.50"),
    "day": date(2026, 1, 1),
    "at": datetime(2026, 1, 1, 12, tzinfo=UTC),
    "customer": UUID(int=7),
    "seal": b"\xff\x00",
    "marks": {1, 2},
    "lines": [shop.Line(Decimal("0.10"), date(2026, 2, 1))],
}


def test_arguments_that_show_prints_can_be_given_back(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue("bill", BILL).id
    app.sync.portal.call(drained(app))
    shown = ropewalk("jobs", "show", job_id, "--json", "--app", "shop:app").json["arguments"]
    again = ropewalk("jobs", "retry", job_id, "--arguments", json.dumps(shown), "--app", "shop:app")
    assert (again.code, again.err) == (0, "")
    assert app.sync.get(job_id).arguments == BILL
    app.sync.portal.call(drained(app))
    paid = {**shown, "amount": "1.50", "lines": [{"price": "7", "due": "2026-03-01"}], "marks": [3]}
    assert ropewalk("jobs", "retry", job_id, "--arguments", json.dumps(paid), "--app", "shop:app").code == 0
    app.sync.portal.call(drained(app))
    job = app.sync.get(job_id)
    assert (job.result, job.arguments["marks"]) == ("1.50", {3})
    assert job.arguments["lines"] == [shop.Line(Decimal(7), date(2026, 3, 1))]


def test_arguments_that_do_not_fit_are_named(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue("bill", BILL).id
    app.sync.portal.call(drained(app))
    shown = ropewalk("jobs", "show", job_id, "--json", "--app", "shop:app").json["arguments"]
    for name, value in (("amount", "much"), ("day", "soon"), ("customer", "ada"), ("lines", [{"price": "x"}])):
        given = json.dumps({**shown, name: value})
        answer = ropewalk("jobs", "retry", job_id, "--arguments", given, "--app", "shop:app")
        assert (answer.code, answer.out) == (2, "")
        assert f"bill: argument '{name}'" in answer.err
    assert app.sync.get(job_id).run == 1


def test_a_hidden_secret_is_not_given_back_as_its_value(ropewalk: Run, signed_in: str) -> None:
    given = '{"user": "ada", "number": "[hidden]", "api_key": "k"}'
    answer = ropewalk("jobs", "retry", signed_in, "--arguments", given, "--app", "shop:app")
    assert (answer.code, answer.out) == (2, "")
    assert "argument 'number' holds '[hidden]', which stands for a secret" in answer.err


def test_what_is_shown_of_a_secret_is_not_taken_for_it(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue(shop.sign_in("eve", "4111", "k-1"), max_attempts=1).id
    app.sync.portal.call(drained(app))
    shown = ropewalk("jobs", "show", job_id, "--json", "--app", "shop:app").json["arguments"]
    assert shown == {"user": "eve", "number": "[hidden]", "api_key": "[hidden]"}
    answer = ropewalk("jobs", "retry", job_id, "--arguments", json.dumps(shown), "--app", "shop:app")
    assert (answer.code, answer.out) == (2, "")
    assert "argument 'number' holds '[hidden]'" in answer.err
    again = json.dumps({**shown, "number": "4222"})
    assert "argument 'api_key'" in ropewalk("jobs", "retry", job_id, "--arguments", again, "--app", "shop:app").err
    stored = app.sync.get(job_id)
    assert (stored.state.value, stored.arguments["number"], stored.arguments["api_key"]) == (
        "dead_letter",
        "4111",
        "k-1",
    )


def test_nor_in_the_job_of_a_schedule(ropewalk: Run, app: App) -> None:
    secrets = json.dumps({"user": "ada", "number": "4111", "api_key": "k-1"})
    shown = json.dumps({"user": "eve", "number": "[hidden]", "api_key": "[hidden]"})
    words = ["--every", "1h", "--type", "sign_in", "--app", "shop:app", "--arguments"]
    assert ropewalk("schedules", "create", "hourly", *words, secrets).code == 0
    for command in (
        ["create", "other", *words, shown],
        ["edit", "hourly", "--app", "shop:app", "--arguments", shown],
        ["edit", "hourly", "--app", "shop:app", "--dry-run", "--arguments", shown],
        ["edit", "hourly", *words, shown],
    ):
        answer = ropewalk("schedules", *command)
        assert (answer.code, answer.out) == (2, "")
        assert "argument 'number' holds '[hidden]'" in answer.err
    [schedule] = app.sync.schedules()
    assert schedule.arguments == {"user": "ada", "number": "4111", "api_key": "k-1"}


def test_cancel(ropewalk: Run, jobs: Jobs, app: App) -> None:
    answer = ropewalk("jobs", "cancel", jobs.later, jobs.waiting, "--reason", "the customer left")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [f"{jobs.later}  cancelled", f"{jobs.waiting}  cancelled"]
    assert app.sync.get(jobs.later).state.value == "cancelled"
    assert [entry.reason for entry in app.sync.history(jobs.later)][-1] == "the customer left"


def test_cancel_says_what_it_cannot(ropewalk: Run, jobs: Jobs) -> None:
    answer = ropewalk("jobs", "cancel", jobs.added, "missing")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.splitlines() == [
        f"error: {jobs.added} has already ended (completed): there is nothing to cancel",
        "error: missing: no such job for this tenant",
    ]
    answer = ropewalk("jobs", "cancel", jobs.added, "--json")
    assert answer.code == 1
    assert answer.json == {
        "jobs": [{"job_id": jobs.added, "status": "already_complete", "previous_state": "completed"}]
    }


def test_why(ropewalk: Run, jobs: Jobs) -> None:
    assert ropewalk("why", jobs.waiting).out.startswith(
        "scheduled (no_worker): no live worker serves type 'linger' on queue 'default'"
    )
    told = ropewalk("why", jobs.later, "--json")
    assert told.code == 0
    assert (told.json["state"], told.json["cause"]) == ("delayed", "delayed")
    assert "its time comes in" in told.json["explanation"]


def test_json_is_one_document_whatever_is_stored(ropewalk: Run, app: App) -> None:
    job_id = app.sync.enqueue("add", {"a": 1, "b": 2}, tags={"täg": "\u2028"}).id
    assert json.loads(ropewalk("jobs", "show", job_id, "--json").out)["tags"] == {"täg": "\u2028"}


@pytest.fixture
def signed_in(app: App) -> str:
    handle = app.sync.enqueue(shop.sign_in("ada", number="4711", api_key="k"))
    app.sync.portal.call(drained(app))
    return handle.id


def test_show_logs(ropewalk: Run, signed_in: str) -> None:
    """R10, O8: what was kept, secrets hidden."""
    *_, header, line = ropewalk("jobs", "show", signed_in, "--logs").out.splitlines()
    assert header.split() == ["AT", "ATTEMPT", "LEVEL", "MESSAGE"]
    assert re.fullmatch(r'\S+ \S+ +1 +INFO +signing in  {"user":"ada","token":"\[hidden\]"}', line)
    [kept] = ropewalk("jobs", "show", signed_in, "--logs", "--json").json["logs"]
    assert (kept["level"], kept["message"], kept["attempt"]) == ("INFO", "signing in", 1)


def test_show_says_when_nothing_was_logged(ropewalk: Run, jobs: Jobs) -> None:
    assert ropewalk("jobs", "show", jobs.added, "--logs").out.endswith("\nthe job logged nothing\n")


def test_secret_arguments_are_hidden(ropewalk: Run, signed_in: str) -> None:
    """O8: by their annotation and by their name, for people and for programs."""
    shown = ropewalk("jobs", "show", signed_in, "--app", "shop:app").out
    assert '{"user":"ada","number":"[hidden]","api_key":"[hidden]"}' in shown
    [listed] = ropewalk("jobs", "list", "--json", "--app", "shop:app").json["jobs"]
    assert listed["arguments"] == {"user": "ada", "number": "[hidden]", "api_key": "[hidden]"}
    # Without the app there are only names to go by.
    [listed] = ropewalk("jobs", "list", "--json").json["jobs"]
    assert listed["arguments"] == {"user": "ada", "number": "4711", "api_key": "[hidden]"}
