"""H5: rules about workers and jobs, every branch."""

from __future__ import annotations

from msgspec import structs

from ropewalk.domain.time import DAY, MINUTE, SECOND
from ropewalk.observe.doctor import jobs as work
from ropewalk.observe.doctor import workers
from ropewalk.observe.doctor.facts import Late
from tests.observe.doctor.healthy import NOW, WORKER, backlog, full, told
from tests.observe.doctor.healthy import work as jobs

DEAD = structs.replace(WORKER, id="w2", beat_at=NOW - 31 * SECOND)
LEAVING = structs.replace(WORKER, id="w3", draining=True)


def test_workers() -> None:
    assert told(workers.workers([WORKER, LEAVING], NOW)) == [
        ("ok", "workers", "2 workers alive, 6 of 20 slots taken"),
        ("note", "workers", "1 worker told to drain: w3"),
    ]
    assert told(workers.workers([DEAD], NOW)) == [
        ("warn", "workers", "no worker is alive"),
        ("note", "workers", "1 worker gave no sign for a whole lease: w2 on h, for 31 s"),
    ]
    assert told(workers.workers([], NOW)) == [("warn", "workers", "no worker is alive")]


def test_what_nobody_serves() -> None:
    assert told(workers.unserved(jobs(backlog=[backlog()]), [WORKER], NOW)) == [
        ("ok", "queues", "a living worker serves every job that could start")
    ]
    unknown = jobs(backlog=[backlog("old", jobs=7, since=200)])
    found = "7 jobs of type 'old' in queue 'default' could start, the oldest for 3 min, and no living worker"
    assert told(workers.unserved(unknown, [WORKER], NOW)) == [("warn", "types", f"{found} registers that type")]
    elsewhere = jobs(backlog=[backlog(tenant="acme")])
    picky = structs.replace(WORKER, tenants=("umbrella",))
    [finding] = workers.unserved(elsewhere, [picky], NOW)
    assert (finding.subject, finding.advice) == (
        "queues",
        "start a worker that registers 'add' and serves queue 'default' of tenant 'acme'",
    )
    assert "of tenant 'acme' could start" in finding.found
    for away in (DEAD, LEAVING, structs.replace(WORKER, queues=("mail",))):
        [finding] = workers.unserved(jobs(backlog=[backlog()]), [away], NOW)
        assert finding.level == "warn"


def test_very_much_that_nobody_serves_is_summed_up() -> None:
    many = [backlog(f"t{number}", jobs=2, since=number) for number in range(1, 14)]
    *shown, rest = told(workers.unserved(jobs(backlog=many), [], NOW))
    assert ["'t13'" in shown[0][2], len(shown)] == [True, 10]
    assert rest == ("warn", "queues", "6 jobs of 3 more types and queues, which nobody serves either")


def test_leases() -> None:
    fine = ("ok", "leases", "no job is stuck under a lease that is over")
    assert told(work.leases(jobs(), NOW)) == [fine]
    assert told(work.leases(jobs(leases_over=1, oldest_lease_over_at=NOW - 9 * SECOND), NOW)) == [fine]
    found = "2 jobs of dead workers under leases that are over, the oldest for 10 s, and nobody takes them back"
    assert told(work.leases(jobs(leases_over=2, oldest_lease_over_at=NOW - 10 * SECOND), NOW)) == [
        ("warn", "leases", found)
    ]


def test_pauses() -> None:
    assert told(work.pauses(jobs(), NOW)) == [("ok", "pauses", "no queue is paused")]
    quiet = jobs(paused=[("default", "mail")], backlog=[backlog(tenant="acme", queue="mail")])
    assert told(work.pauses(quiet, NOW)) == [("ok", "pauses", "paused, with no jobs that could start: mail")]
    [finding] = work.pauses(
        jobs(
            paused=[("acme", "mail"), ("acme", "maps")],
            backlog=[backlog("a", tenant="acme", queue="mail", jobs=2), backlog(tenant="acme", queue="mail", since=90)],
        ),
        NOW,
    )
    assert told([finding]) == [
        ("note", "pauses", "queue 'mail' of tenant 'acme' is paused with 3 jobs behind it, the oldest for 90 s")
    ]
    assert finding.advice == "if that is over: `ropewalk queues resume mail --tenant acme`"


def test_limits() -> None:
    fine = [("ok", "limits", "no full limit holds jobs up for long")]
    assert told(work.limits([], jobs(), NOW)) == fine
    assert told(work.limits([full("queue", "mail")], jobs(backlog=[backlog(queue="mail", since=59)]), NOW)) == fine
    assert told(work.limits([full("queue", "mail")], jobs(backlog=[backlog(since=600)]), NOW)) == fine
    assert told(work.limits([full("type", "add")], jobs(backlog=[backlog("mail", since=600)]), NOW)) == fine
    assert told(work.limits([full("key", "k")], jobs(backlog=[backlog(tenant="acme", since=600)]), NOW)) == fine
    for kind, name in (("queue", "default"), ("type", "add"), ("key", "stripe")):
        found = f"{kind} '{name}' of tenant 'default' is full (5 run), and jobs it may concern have waited for 10 min"
        assert told(work.limits([full(kind, name)], jobs(backlog=[backlog(since=600)]), NOW)) == [
            ("note", "limits", found)
        ]


def test_schedules() -> None:
    late = [Late(name=f"s{number}", tenant="default", late_us=number * MINUTE) for number in range(7, 0, -1)]
    assert told(work.schedules([])) == [("ok", "schedules", "none is late")]
    assert told(work.schedules([structs.replace(late[0], late_us=9 * SECOND)])) == [("ok", "schedules", "none is late")]
    shown = "'s7' by 7 min, 's6' by 6 min, 's5' by 5 min, 's4' by 4 min, 's3' by 3 min and 2 more"
    assert told(work.schedules(late)) == [("warn", "schedules", f"7 schedules should have fired and did not: {shown}")]
    assert told(work.schedules([structs.replace(late[0], late_us=3 * DAY)])) == [
        ("warn", "schedules", "1 schedule should have fired and did not: 's7' by 3 d")
    ]


def test_damage() -> None:
    assert told(work.damage(jobs())) == [("ok", "damage", "no row was found that cannot be read")]
    assert told(work.damage(jobs(set_aside=2, unreadable=["schedule"]))) == [
        ("warn", "damage", "2 jobs set aside as dead letters: their stored rows cannot be read"),
        ("warn", "damage", "rows that cannot be read are left out, in table schedule"),
    ]


def test_dead_letters_and_records() -> None:
    assert told(work.dead_letters(jobs())) == [("ok", "dead letters", "there are none")]
    assert told(work.dead_letters(jobs(dead_letters={"a": 1, "c": 2000, "b": 1}))) == [
        ("note", "dead letters", "2,002 jobs gave up: 2,000 of 'c', 1 of 'a', 1 of 'b'")
    ]
    assert told(work.records(jobs())) == [("ok", "records", "all are in a format this release knows")]
    assert told(work.records(jobs(newer_records=1))) == [
        ("warn", "records", "1 job written by a newer release of ropewalk than this one")
    ]
