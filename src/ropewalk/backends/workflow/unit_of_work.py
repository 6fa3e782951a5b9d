"""What one transaction of a store offers to the code here: records to change, and places to write beside them.

Every record and scope handed out is *the* object of this transaction: asking twice gives the same one, changed or not.
Before the domain changes a record it is taken (`take`); what was taken, and every scope handed out, is written back
when the store ends the transaction. Nothing here is called after a refusal was raised, so a refusal must come before
the first write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.idempotency import KeyRecord
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope, ScopeChange


class Resolve(Struct, frozen=True):
    """The edges that wait for this parent are to be resolved. Repeating it finds none left: safe to postpone."""

    kind: ParentKind
    parent: int
    parent_id: str
    ending: Ending
    failure: str | None = None
    """What ended and why, where that is not one job alone. See ParentEnd."""


RecordKind: TypeAlias = Literal["job", "scope"]
Item = Resolve | ScopeChange
"""what is left to do after a transition"""


class UnitOfWork(Protocol):
    @property
    def now(self) -> Instant: ...

    def passes_over(self, kind: RecordKind, number: int) -> bool:
        """Whether this record is to stay as it is: changing it raised an error that nobody expects (culprit.py)."""
        ...

    # ── jobs

    def find(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        """Those that exist, by id."""
        ...

    def find_shared(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        """Those that exist, by id, to be read: until the transaction is over none of them ends or vanishes.

        Their holders may renew their leases meanwhile: a user's transaction may stay open for longer than a lease.
        """
        ...

    def load(self, seqs: Iterable[int]) -> list[JobRecord]:
        """Those that exist."""
        ...

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        """Children of this job by their spawn key."""
        ...

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        """The last member of a chain that continued at least once, as `find_shared` answers it."""
        ...

    def number(self, jobs: Sequence[JobRecord]) -> None:
        """Give new records their `seq`, in this order."""
        ...

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        """Keep new records. Seen by every later read of this transaction."""
        ...

    def take(self, job: JobRecord) -> None:
        """It is about to change."""
        ...

    def record(self, job: JobRecord, effects: Effects) -> None:
        """The attempt and event of a transition (its follow-up is up to the caller). Closes the key of an ended job."""
        ...

    # ── keys

    def key(self, tenant: str, job_type: str, key: str) -> KeyRecord | None: ...

    def put_key(self, held: KeyRecord) -> None: ...

    def may_reopen(self, job: JobRecord) -> bool:
        """Whether no other open job holds the key of this finished one."""
        ...

    def reopen_key(self, job: JobRecord) -> None:
        """The job was retried."""
        ...

    # ── edges

    def note_dependants(self, parents: Sequence[JobRecord]) -> None:
        """Give these jobs the flag that others depend on them, and change nothing else of them."""
        ...

    def add_edges(self, edges: Sequence[Edge]) -> None: ...

    def waiting_edges(self, parents: Sequence[tuple[ParentKind, int]], limit: int) -> list[Edge]:
        """Unresolved edges to these parents."""
        ...

    def edges_of(self, seqs: Iterable[int]) -> list[Edge]:
        """The edges of these jobs to their parents, by child and position."""
        ...

    def ended_edges(self, parents: Sequence[tuple[ParentKind, int]]) -> list[Edge]:
        """Edges to these parents that were resolved otherwise than as completed."""
        ...

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        """Resolve these edges, or with None let them wait again."""
        ...

    # ── scopes

    def scopes(self, ids: Iterable[int]) -> dict[int, Scope]:
        """Those that exist, to be changed in place."""
        ...

    def add_scope(self, scope: Scope) -> None: ...

    def keep(self, root: int, seq: int, contribution: Contribution) -> None:
        """A contribution that is put together by its reader, after all earlier ones of this group."""
        ...

    # ── later

    def postpone(self, items: Sequence[Item]) -> None:
        """Keep what is left over for `cascade`."""
        ...

    def report_orphan(self, scope: Scope) -> None:
        """A group nobody waits for closed: recorded once for each of its generations, if anybody wants to hear of it.

        Its client may (`scope.report_orphan`), or whoever takes orphans (Workflows.take_orphans).
        """
        ...

    def forget_steps(self, job: JobRecord) -> None: ...
