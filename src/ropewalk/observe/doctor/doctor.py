"""The examination from its beginning: is the store there, is it ours, may it be used; and then everything else.

Nothing is opened that would have to be changed first: a schema that is not current is a finding, not migrated.

All rules, in the order they are read: where jobs are kept, what lies between, who works, how the jobs stand.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.errors import RopewalkError, StoreRefused, StoreUnavailable
from ropewalk.observe.doctor import connection, postgres, sqlite, workers
from ropewalk.observe.doctor import jobs as work
from ropewalk.observe.doctor.facts import Facts, gather
from ropewalk.observe.doctor.findings import Finding, bad, note, number_of, ok
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, MIGRATIONS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.diagnosis import PostgresFacts, SqliteFacts
from ropewalk.ports.store.messages import Durability
from ropewalk.ports.store.migrations import SchemaState


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
        *work.damage(jobs),
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
        *postgres.vacuum(place, facts.examination.now),
        *postgres.bloat(place),
        *postgres.wraparound(place),
        *connection.pooler(place),
    ]


def _wake_ups(facts: Facts) -> list[Finding]:
    """A store inside one process has nobody else to wake. One that was given as an object has no URL to open again."""
    if facts.durability is Durability.D0 or not facts.has_twin:
        return []
    place = facts.examination.place
    return connection.wake_ups(facts.hint_us, place if isinstance(place, PostgresFacts) else None)


async def examine(
    store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool
) -> list[Finding]:
    DIAGNOSIS.of(store)
    try:
        findings = await _schema(store)
        if findings and findings[0].advice is not None:
            return findings
        await store.open()
        return [*findings, *await _examined(store, make_twin, runtime, deep=deep)]
    except (StoreRefused, StoreUnavailable) as error:
        return [_refused(error)]


async def _examined(
    store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool
) -> list[Finding]:
    if make_twin is None:
        return diagnose(await gather(store, None, runtime, deep=deep))
    twin = make_twin()
    try:
        await twin.open()
        return diagnose(await gather(store, twin, runtime, deep=deep))
    finally:
        await twin.close()


async def _schema(store: Store) -> list[Finding]:
    migrations = MIGRATIONS.if_declared(store)
    return [] if migrations is None else [schema(await migrations.schema())]


def schema(state: SchemaState) -> Finding:
    if not state.missing:
        return ok("schema", f"version {state.applied}, the newest this release knows")
    missing = number_of(len(state.missing), "migration")
    found = "there is no schema here yet" if state.applied == 0 else f"version {state.applied} lacks {missing}"
    return bad(
        "schema", f"{found}: {', '.join(state.missing)}", "run `ropewalk migrate`, or start a worker, which does it"
    )


def _refused(error: RopewalkError) -> Finding:
    if isinstance(error, StoreUnavailable):
        return bad("store", str(error), "see that it runs, and can be reached from here with this URL")
    return bad("store", str(error), "it must not be used as it is: do what is said there")
