"""A store that can do less: the memory store without what it does not declare.

Whatever reaches it beyond that is a mistake of the library, and fails the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ropewalk.backends.memory import MemoryStore
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import (
    DIAGNOSIS,
    DOCUMENTS,
    LIMITS,
    LOGS,
    QUOTAS,
    SCHEDULES,
    STATISTICS,
    WORKFLOWS,
    Capability,
)
from ropewalk.ports.store.diagnosis import DiagnosisStore
from ropewalk.ports.store.documents import DocumentStore
from ropewalk.ports.store.leases import Renewal, Renewed, Settlements
from ropewalk.ports.store.limits import LimitStore
from ropewalk.ports.store.logs import LogStore
from ropewalk.ports.store.quotas import QuotaStore
from ropewalk.ports.store.schedules import ScheduleStore
from ropewalk.ports.store.statistics import StatisticsStore
from ropewalk.ports.store.submission import Submission, SubmitAnswer
from ropewalk.ports.store.workflows import WorkflowStore

PROTOCOLS: dict[Capability[Any], type] = {
    WORKFLOWS: WorkflowStore,
    LIMITS: LimitStore,
    QUOTAS: QuotaStore,
    SCHEDULES: ScheduleStore,
    STATISTICS: StatisticsStore,
    LOGS: LogStore,
    DOCUMENTS: DocumentStore,
    DIAGNOSIS: DiagnosisStore,
}


class FewerStore(MemoryStore):
    def __init__(self, runtime: Runtime, declared: Iterable[Capability[Any]] = ()) -> None:
        super().__init__(runtime)
        self._declared = frozenset(declared)

    @property
    def name(self) -> str:
        return "small"

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        return self._declared

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            for capability, protocol in PROTOCOLS.items():
                assert capability in self._declared or name not in vars(protocol), f"{name} is of {capability.name}"
        return super().__getattribute__(name)

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        for asked in submissions:
            if WORKFLOWS not in self._declared:
                assert asked.under is None
                assert all(new.gate is None and new.on_failure is None for new in asked.jobs)
            assert LIMITS in self._declared or all(new.limit_key is None for new in asked.jobs)
        return await super().submit(submissions, wait=wait)

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> Settlements:
        for asked in settlements:
            if WORKFLOWS not in self._declared:
                assert (asked.plan, asked.suspension) == (None, None)
            assert LOGS in self._declared or not asked.lines
        return await super().settle(owner, settlements)

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        assert LOGS in self._declared or not any(each.lines for each in renewals)
        return await super().renew(owner, renewals)
