"""All rules, in the order they are read: where jobs are kept, what lies between, who works, how the jobs stand."""

from __future__ import annotations

from ropewalk.observe.doctor import connection, postgres, postgres_tables, sqlite, workers
from ropewalk.observe.doctor import jobs as work
from ropewalk.observe.doctor.facts import Facts
from ropewalk.observe.doctor.finding import Finding, note
from ropewalk.ports.store.diagnosis import PostgresFacts, SqliteFacts
from ropewalk.ports.store.messages import Durability


def diagnose(facts: Facts) -> list[Finding]:
    now, jobs = facts.examination.now, facts.examination.work
    return [
        *_place(facts),
        *connection.clock(facts.clock),
        *_wake_ups(facts),
        *workers.workers(facts.workers, now),
        *workers.unserved(jobs, facts.workers, now),
        *work.leases(jobs, now),
        *work.pauses(jobs, now),
        *work.limits(facts.full, jobs, now),
        *work.schedules(facts.late),
        *work.records(jobs),
        *work.dead_letters(jobs),
    ]


def _place(facts: Facts) -> list[Finding]:
    match facts.examination.place:
        case SqliteFacts() as place:
            rules = (sqlite.durability, sqlite.library, sqlite.log, sqlite.space, sqlite.integrity)
            return [finding for rule in rules for finding in rule(place)]
        case PostgresFacts() as place:
            return _server(place, facts)
        case None:
            return [
                note(
                    "durability",
                    f"{facts.durability.name}: what this store acknowledged is {facts.durability}",
                    "use sqlite:///… or postgresql://… for jobs that must survive",
                )
            ]


def _server(place: PostgresFacts, facts: Facts) -> list[Finding]:
    return [
        *postgres.durability(place, facts.durability),
        *postgres.server(place),
        *postgres.rights(place),
        *postgres.connections(place),
        *postgres.transactions(place),
        *postgres.locks(place),
        *postgres_tables.vacuum(place, facts.examination.now),
        *postgres_tables.bloat(place),
        *postgres_tables.wraparound(place),
        *connection.pooler(place),
    ]


def _wake_ups(facts: Facts) -> list[Finding]:
    """A store inside one process has nobody else to wake."""
    if facts.durability is Durability.D0:
        return []
    place = facts.examination.place
    return connection.wake_ups(facts.hint_us, place if isinstance(place, PostgresFacts) else None)
