"""`ropewalk worker`: the banner, the log, and above all its end."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from ropewalk import App, Backoff, State
from tests.cli import shop
from tests.cli.conftest import Run, Start, lingering, until


def test_it_says_who_it_is_and_logs_what_happens(start: Start, app: App, url: str) -> None:
    process = start("--concurrency", "2", "--type", "add", "--type", "divide")
    done = app.sync.enqueue(shop.add(1, b=2))
    failed = app.sync.enqueue(shop.divide(1, b=0))
    until(lambda: app.sync.get(done.id).terminal and app.sync.get(failed.id).terminal, "both end")
    worker = app.sync.workers()[0].id
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out == f"worker {worker} on {url} (survives power loss): add, divide; 2 at a time\n"
    assert f"INFO started type=add job={done.id} attempt=1\n" in err
    assert f"INFO succeeded type=add job={done.id} attempt=1\n" in err
    assert (
        f"ERROR failed type=divide job={failed.id} attempt=1 will_retry=no error='ZeroDivisionError: division by "
        in err
    )
    assert f"ERROR dead_lettered type=divide job={failed.id} attempt=1 error='ZeroDivisionError: division by " in err
    assert (err.count("Traceback (most recent call last):"), err.count("return a / b")) == (1, 1)
    assert err.endswith("INFO drained: every job of this worker is finished or given back\n")


def test_every_tenants_events_are_logged(start: Start, app: App) -> None:
    process = start()
    theirs = app.sync.tenant("acme").enqueue(shop.add(1, b=2))
    until(lambda: theirs.status().terminal, "it ends")
    process.terminate()
    assert f"succeeded type=add job={theirs.id} attempt=1 tenant=acme\n" in process.communicate(timeout=20)[1]


def test_the_banner_as_json_and_a_quiet_log(start: Start, app: App, url: str) -> None:
    process = start("--json", "--log-level", "warning")
    added = app.sync.enqueue(shop.add(1, b=2))
    until(lambda: added.status().terminal, "it ends")
    process.terminate()
    out, err = process.communicate(timeout=20)
    banner = json.loads(out)
    assert (banner["store"], banner["concurrency"], "add" in banner["types"]) == (url, 10, True)
    assert err == ""


def test_failures_are_logged_at_every_level(start: Start, app: App) -> None:
    process = start("--log-level", "error")
    done = app.sync.enqueue(shop.add(1, b=2))
    failed = app.sync.enqueue(shop.divide(1, b=0), max_attempts=2, backoff=Backoff.constant(0.01))
    until(lambda: done.status().terminal and failed.status().terminal, "both end")
    process.terminate()
    err = process.communicate(timeout=20)[1]
    heads = [line.split(" ", 2)[2].partition(" error=")[0] for line in err.splitlines() if f"job={failed.id}" in line]
    assert heads == [
        f"ERROR failed type=divide job={failed.id} attempt=2 will_retry=no",
        f"ERROR dead_lettered type=divide job={failed.id} attempt=2",
    ]
    assert done.id not in err


def test_the_log_as_json(start: Start, app: App) -> None:
    process = start("--log-format", "json")
    failed = app.sync.enqueue(shop.divide(1, b=0), max_attempts=2, backoff=Backoff.constant(0.01))
    until(lambda: failed.status().terminal, "it ends")
    process.terminate()
    lines = [json.loads(line) for line in process.communicate(timeout=20)[1].splitlines()]
    said = [line for line in lines if line.get("job_id") == failed.id and line.get("error")]
    assert [(line["level"], line["job_event"], line.get("will_retry")) for line in said] == [
        ("WARNING", "failed", True),
        ("ERROR", "failed", False),
        ("ERROR", "dead_lettered", None),
    ]
    assert ["ZeroDivisionError: division by zero" in line.get("exception", "") for line in said] == [True, True, False]
    assert {(line["job_type"], line["error"]) for line in said} == {("divide", "ZeroDivisionError: division by zero")}
    assert lines[-1]["message"] == "drained: every job of this worker is finished or given back"


def test_it_serves_only_what_it_was_asked_to(start: Start, app: App) -> None:
    start("--queue", "fast", "--tenant", "acme")
    for tenant, queue in (("default", "fast"), ("acme", "default")):
        app.sync.tenant(tenant).enqueue(shop.add(0, b=0), queue=queue, id=f"{tenant}-{queue}")
    served = app.sync.tenant("acme").enqueue(shop.add(1, b=2), queue="fast")
    until(lambda: served.status().terminal, "it ends")
    assert app.sync.get("default-fast").state is State.SCHEDULED
    assert app.sync.tenant("acme").get("acme-default").state is State.SCHEDULED


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_drain_lets_a_handler_finish(stop: signal.Signals, start: Start, app: App, place: Path) -> None:
    process = start()
    job_id = lingering(app, "linger", place)
    process.send_signal(stop)
    until(lambda: app.sync.workers() and process.poll() is None, "the worker is still there")
    (place / "go").touch()
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert app.sync.get(job_id).result == "gone"


def test_after_the_grace_period_a_job_is_given_back(start: Start, app: App, place: Path) -> None:
    process = start("--grace", "0.1")
    job_id = lingering(app, "linger", place)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_a_second_signal_does_not_wait(start: Start, app: App, place: Path) -> None:
    process = start("--grace", "60")
    job_id = lingering(app, "linger", place)
    stderr = process.stderr
    assert stderr is not None
    process.send_signal(signal.SIGINT)
    until(lambda: "draining" in stderr.readline(), "the drain begins")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert app.sync.get(job_id).state is State.SCHEDULED


@pytest.mark.parametrize(
    ("job_type", "said"),
    [
        ("deaf_thread", "error: a handler did not end when it was told to: the process ends without it"),
        ("deaf_task", "error: a handler did not end when it was told to: the process ends without it"),
        ("block_the_loop", "error: the worker did not come to an end within 5 s: the process ends without it"),
    ],
)
def test_it_ends_whatever_a_handler_does(job_type: str, said: str, start: Start, app: App, place: Path) -> None:
    process = start("--grace", "0")
    lingering(app, job_type, place)
    began = time.monotonic()
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said in err
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--concurrency", "0"],
            "error: concurrency=0 must be a whole number, at least 1, or a policy of ropewalk.p",
        ),
        (["--lease", "0.1"], "error: lease=0.1 must be a number of at least 1\n"),
        (["--type", "ad"], "error: no job type named 'ad' is registered here; did you mean 'add'?"),
    ],
)
def test_options_that_make_no_sense(options: list[str], said: str, ropewalk: Run) -> None:
    answer = ropewalk("worker", "shop:app", *options)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(said)


def test_a_store_that_must_not_be_used(ropewalk: Run, place: Path) -> None:
    (place / "letter.db").write_text("Dear Ada,\n" * 100)
    answer = ropewalk("worker", "shop:app", ROPEWALK_URL=f"sqlite:///{place}/letter.db")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
