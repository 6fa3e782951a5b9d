"""Which jobs a store can take: what a job asks for must be among the capabilities that its store declares."""

from __future__ import annotations

from collections.abc import Callable

from ropewalk.domain.jobs.record import NewJob
from ropewalk.ports.store.capabilities import LIMITS, WORKFLOWS
from ropewalk.ports.store.core import Store


def refusal(store: Store) -> Callable[[NewJob], None] | None:
    """What raises Unsupported for a job that this store cannot take. None: it can take every job."""
    has_workflows, has_limits = WORKFLOWS in store.capabilities, LIMITS in store.capabilities
    if has_workflows and has_limits:
        return None

    def refuse(new: NewJob) -> None:
        if new.gate is not None or new.on_failure is not None:
            WORKFLOWS.of(store)
        if new.limit_key is not None:
            LIMITS.of(store)

    return refuse
