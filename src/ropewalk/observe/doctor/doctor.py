"""The examination from its beginning: is the store there, is it ours, may it be used; and then everything else.

Nothing is opened that would have to be changed first: a schema that is not current is a finding, not migrated.
"""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.errors import RopewalkError, StoreRefused, StoreUnavailable
from ropewalk.observe.doctor.diagnosis import diagnose
from ropewalk.observe.doctor.finding import Finding, bad, ok
from ropewalk.observe.doctor.gathering import gather
from ropewalk.observe.doctor.words import number_of
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.migrations import Migrating, SchemaState


async def examine(
    store: Store, make_twin: Callable[[], Store] | None, runtime: Runtime, *, deep: bool
) -> list[Finding]:
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
    if not isinstance(store, Migrating):
        return []
    return [schema(await store.schema())]


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
