"""What one transaction of a store offers to the rules of workflows: records to change, and places to write new rows.

Every record and scope that is handed out is the only object for it in this transaction: asking twice returns the same
object. Before the domain changes a record, the record is taken (`take`). Records that were taken, and all scopes that
were handed out, are written back before the transaction ends. A refusal must be raised before the first write, because
nothing is called after it.
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
    """A piece of work: the edges that wait for this parent are to be resolved. Repeating it finds no edge left, so it
    may be postponed."""

    kind: ParentKind
    parent: int
    parent_id: str
    ending: Ending
    failure: str | None = None
    """What ended and why, if that is not the parent alone (see ParentEnd)."""


RecordKind: TypeAlias = Literal["job", "scope"]
Item = Resolve | ScopeChange
"""A piece of work that is left to do after a transition."""


class UnitOfWork(Protocol):
    """One transaction of a store, as the rules of workflows use it."""

    @property
    def now(self) -> Instant: ...

    def passes_over(self, kind: RecordKind, number: int) -> bool:
        """Whether this record stays as it is, because changing it raised an unexpected error before (culprit.py)."""
        ...

    # ── jobs

    def find(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        """Returns those of these jobs that exist, by id."""
        ...

    def find_shared(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        """Returns those of these jobs that exist, by id, to be read: until the transaction ends, none of them ends or
        is deleted.

        Their leases can still be renewed meanwhile, because a user's transaction may stay open for longer than a lease.
        """
        ...

    def load(self, seqs: Iterable[int]) -> list[JobRecord]:
        """Returns those of these jobs that exist."""
        ...

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        """Returns the children of a job with these spawn keys, by their spawn key."""
        ...

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        """Returns the last member of a chain that continued at least once. It is locked like the jobs of
        `find_shared`."""
        ...

    def number(self, jobs: Sequence[JobRecord]) -> None:
        """Gives new records their `seq`, in this order."""
        ...

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        """Adds new records, which every later read of this transaction finds."""
        ...

    def take(self, job: JobRecord) -> None:
        """Declares that a job is about to change, so that it is written back."""
        ...

    def record(self, job: JobRecord, effects: Effects) -> None:
        """Records the attempt and the event of a transition, and closes the idempotency key of a job that ended.
        Compensations are up to the caller."""
        ...

    # ── keys

    def find_key(self, tenant: str, job_type: str, key: str) -> KeyRecord | None: ...

    def put_key(self, held: KeyRecord) -> None: ...

    def may_reopen(self, job: JobRecord) -> bool:
        """Whether no other open job holds the key of this finished one."""
        ...

    def reopen_key(self, job: JobRecord) -> None:
        """Opens the idempotency key of a job that was retried."""
        ...

    # ── edges

    def note_dependants(self, parents: Sequence[JobRecord]) -> None:
        """Sets the flag of these jobs that others depend on them, and changes nothing else."""
        ...

    def add_edges(self, edges: Sequence[Edge]) -> None: ...

    def waiting_edges(self, parents: Sequence[tuple[ParentKind, int]], limit: int) -> list[Edge]:
        """Returns unresolved edges to these parents, up to a limit."""
        ...

    def edges_of(self, seqs: Iterable[int]) -> list[Edge]:
        """Returns the edges of these jobs to their parents, ordered by child and position."""
        ...

    def ended_edges(self, parents: Sequence[tuple[ParentKind, int]]) -> list[Edge]:
        """Returns the edges to these parents whose ending is another one than completed."""
        ...

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        """Resolves these edges; with None, they wait again."""
        ...

    # ── scopes

    def scopes(self, ids: Iterable[int]) -> dict[int, Scope]:
        """Returns those of these scopes that exist, to be changed in place."""
        ...

    def add_scope(self, scope: Scope) -> None: ...

    def keep_contribution(self, root: int, seq: int, contribution: Contribution) -> None:
        """Stores a contribution by itself, after all earlier ones of the group, because the value is put together when
        it is read."""
        ...

    # ── later

    def postpone(self, items: Sequence[Item]) -> None:
        """Leaves work to `cascade`."""
        ...

    def report_orphan(self, scope: Scope) -> None:
        """Records a group that closed while nobody waited for it, once for each of its generations, if anybody wants to
        know.

        Its client may want to know (`scope.report_orphan`), or a process that takes orphan groups
        (Workflows.take_orphans).
        """
        ...

    # ── steps

    def step_names(self, job: JobRecord) -> list[tuple[int, str]]:
        """Returns the position and the name of each stored step, by position."""
        ...

    def forget_steps(self, job: JobRecord, *, from_position: int = 0) -> None:
        """Deletes the steps of a job at this position and later ones."""
        ...
