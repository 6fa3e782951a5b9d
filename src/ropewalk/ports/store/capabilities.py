"""Capabilities: what a store can do beyond the core. A store declares them, so nobody has to find out by trying.

>>> WORKFLOWS.of(store)             # the same store, with the verbs of WorkflowStore; or Unsupported
>>> LOGS.if_declared(store)         # the same store, or None
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from ropewalk.errors import Unsupported
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.diagnosis import DiagnosisStore
from ropewalk.ports.store.documents import DocumentStore
from ropewalk.ports.store.limits import LimitStore
from ropewalk.ports.store.logs import LogStore
from ropewalk.ports.store.migrations import MigrationStore
from ropewalk.ports.store.quotas import QuotaStore
from ropewalk.ports.store.schedules import ScheduleStore
from ropewalk.ports.store.statistics import StatisticsStore
from ropewalk.ports.store.user_transactions import UserTransactionStore
from ropewalk.ports.store.workflows import WorkflowStore

P = TypeVar("P")


@dataclass(frozen=True, slots=True, eq=False)
class Capability(Generic[P]):
    """One optional protocol of a store, and the message for somebody whose store does not implement it."""

    name: str
    """The name for machines, such as "workflows"."""
    what: str
    """The words for people: what a store with this capability has."""
    advice: str
    """The advice for somebody whose store does not have the capability."""

    def of(self, store: Store) -> P:
        """Returns the store with the verbs of this capability. Raises Unsupported if the store does not declare it."""
        if self not in store.capabilities:
            message = f"the {store.name} store has no {self.what}: {self.advice}"
            raise Unsupported(message, store=store.name, capability=self.name)
        return cast("P", store)

    def if_declared(self, store: Store) -> P | None:
        """Returns the store with the verbs of this capability, or None if the store does not declare it."""
        return cast("P", store) if self in store.capabilities else None


_ELSEWHERE: Final = "use a store that has them, such as sqlite:///… or postgresql://…"

WORKFLOWS: Final[Capability[WorkflowStore]] = Capability(
    "workflows", "workflows (dependencies, groups, chains, spawned jobs, steps, signals, compensation)", _ELSEWHERE
)
LIMITS: Final[Capability[LimitStore]] = Capability("limits", "fleet-wide limits", _ELSEWHERE)
QUOTAS: Final[Capability[QuotaStore]] = Capability("quotas", "quotas of tenants", _ELSEWHERE)
SCHEDULES: Final[Capability[ScheduleStore]] = Capability("schedules", "schedules", _ELSEWHERE)
STATISTICS: Final[Capability[StatisticsStore]] = Capability("statistics", "statistics", _ELSEWHERE)
LOGS: Final[Capability[LogStore]] = Capability("logs", "kept log lines", _ELSEWHERE)
USER_TRANSACTIONS: Final[Capability[UserTransactionStore]] = Capability(
    "user_transactions",
    "transactions of its users",
    "connection= needs sqlite:///… or postgresql://…, and so does ctx.transaction(); leave them out in tests that run "
    "in memory",
)
DOCUMENTS: Final[Capability[DocumentStore]] = Capability(
    "documents", "documents of a service (tokens, sessions, webhooks)", _ELSEWHERE
)
DIAGNOSIS: Final[Capability[DiagnosisStore]] = Capability("diagnosis", "examinations of itself", _ELSEWHERE)
MIGRATIONS: Final[Capability[MigrationStore]] = Capability(
    "migrations", "schema of its own", "there is nothing to migrate"
)

ALL: Final[frozenset[Capability[Any]]] = frozenset(
    {
        *(WORKFLOWS, LIMITS, QUOTAS, SCHEDULES, STATISTICS, LOGS, DOCUMENTS, DIAGNOSIS),
        *(USER_TRANSACTIONS, MIGRATIONS),
    }
)
COMPLETE: Final = ALL - {USER_TRANSACTIONS, MIGRATIONS}
"""All capabilities but the two that need a database."""


class CompleteStore(
    Store,
    WorkflowStore,
    LimitStore,
    QuotaStore,
    ScheduleStore,
    StatisticsStore,
    LogStore,
    DocumentStore,
    DiagnosisStore,
    Protocol,
):
    """A store with the capabilities of COMPLETE, which every bundled backend has."""


class DatabaseStore(CompleteStore, UserTransactionStore, MigrationStore, Protocol):
    """A store with all capabilities, in a database that users share."""
