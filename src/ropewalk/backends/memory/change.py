"""One verb's change to more than one plain job: its ledger, what follows from it, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.backends.memory.unit_of_work import MemoryLedger
from ropewalk.backends.workflow.propagation import BUDGET, Rippling
from ropewalk.backends.workflow.unit_of_work import Item
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.ports.store.messages import Moved, Ripple


class Change:
    def __init__(self, tables: Tables, now: Instant, *, left_over: Iterable[Item] = (), budget: int = BUDGET) -> None:
        self.now = now
        self.ledger = MemoryLedger(tables, now)
        self.rippling = Rippling(self.ledger, budget)
        self.rippling.add(left_over)

    def moved(self, job: JobRecord, effects: Effects) -> None:
        """The store itself moved this job: that is told, too."""
        self.rippling.moved.append(Moved(job=job, move=effects.move))
        self.rippling.ended(job, effects)

    def end(self) -> Ripple:
        """What follows happens, everything is put back, and what leaves the store are copies."""
        ripple = self.rippling.run()
        self.ledger.flush()
        if not ripple.moved:
            return ripple
        return structs.replace(ripple, moved=[structs.replace(each, job=copied(each.job)) for each in ripple.moved])
