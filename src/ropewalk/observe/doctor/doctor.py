"""The examination of a store. It begins with the questions whether the store can be reached, whether it is one of
ropewalk, and whether this release may use it.

The examination changes nothing: a schema that is not current is a finding, and the store is not opened then.

The findings come in this order: those of the store about itself, those about the connection to it, those about workers,
and those about jobs.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.errors import RopewalkError, StoreRefused, StoreUnavailable
from ropewalk.observe.doctor import connection, workers
from ropewalk.observe.doctor import jobs as work
from ropewalk.observe.doctor.facts import Facts, gather
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, MIGRATIONS
from ropewalk.ports.store.core import Durability, Store
from ropewalk.ports.store.findings import Finding, bad, note, number_of, ok
from ropewalk.ports.store.migrations import SchemaState


def diagnose(facts: Facts) -> list[Finding]:
    """Returns the findings that follow from the facts."""
    now, jobs = facts.examination.now, facts.examination.work
    return [
        *_durability(facts),
        *facts.examination.findings,
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


def _durability(facts: Facts) -> list[Finding]:
    """Returns the finding about the durability that the store declares, unless the store has examined that itself."""
    if any(each.subject == "durability" for each in facts.examination.findings):
        return []
    level = facts.durability
    if level is not Durability.D0:
        return [ok("durability", f"{level.name}: an acknowledged job {level}")]
    return [
        note(
            "durability",
            f"{level.name}: what this store acknowledged is {level}",
            "use sqlite:///… or postgresql://… for jobs that must survive",
        )
    ]


def _wake_ups(facts: Facts) -> list[Finding]:
    if facts.examination.wake_ups is not None:
        return [facts.examination.wake_ups]
    return connection.wake_ups(facts.hint_us, facts.examination.lost_hint_advice) if facts.hint_sent else []


async def examine(
    store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool
) -> list[Finding]:
    """Returns all findings about a store that may not be open yet. `make_twin` makes another store on the same data."""
    DIAGNOSIS.of(store)
    try:
        findings = await _schema(store)
        if findings and findings[0].advice is not None:
            return findings
        await store.open()
        return [*findings, *diagnose(await gather(store, make_twin, runtime, deep=deep))]
    except (StoreRefused, StoreUnavailable) as error:
        return [_refused(error)]


async def _schema(store: Store) -> list[Finding]:
    migrations = MIGRATIONS.if_declared(store)
    return [] if migrations is None else [schema(await migrations.schema())]


def schema(state: SchemaState) -> Finding:
    """Returns the finding about the version of the schema."""
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
