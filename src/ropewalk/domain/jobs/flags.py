"""The flags of a job: a bitmask that says which tables have something about it, so that a plain job touches no other.

A release that adds a flag writes the records with this flag in a newer format (record.RECORD_FORMAT), which older
workers leave alone. Therefore a bit that this release does not know is damage if the release knows the format of the
record.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from msgspec import Meta

if TYPE_CHECKING:
    from ropewalk.domain.jobs.record import JobRecord

HAS_DEPENDANTS: Final = 1
"""Other jobs depend on the job."""
GROUPED: Final = 2
"""The job is a member of a scope."""
KEYED: Final = 4
"""The job has an idempotency key."""
CALLBACK: Final = 16
"""The job has a callback URL."""
ON_FAILURE: Final = 32
"""The job names a compensation."""
STEPPED: Final = 64
"""The job may have stored steps, because its handler finished one or suspended itself."""
STRICT_ORDER: Final = 128
"""Priority alone decides when the job is claimed, without ageing. The job still settles as a plain one."""

OWNS_SCOPE: Final = 256
"""Other jobs were queued under the job."""
CHAINED: Final = 512
"""The job is a later member of a chain, or a first one that was continued."""
SKIPPED: Final = 1024
"""The job was completed without running, because its gate could no longer open."""
REPORT_ORPHAN: Final = 2048
"""The client wants to be told if the group of the job closes while nobody waits for it."""
OWN_LEASE: Final = 4096
"""The job has a lease length of its own, which replaces that of its type."""
UNRECORDED: Final = 8192
"""The sender did not record its trace. This is checked for every attempt, so it is a flag and not read from the text of
the trace each time."""

CONTINUED: Final = 16_384
"""The job was completed with a continuation, so that a later member of its chain has the result."""
FORGOTTEN: Final = 32_768
"""The result of the job was deleted before the job itself (`Retention.results_us`)."""

AT_FIXED_TIME: Final = 65_536
"""A user named the `run_at` of the job as an instant. Otherwise it was computed from the clock, as for a retry."""

StoredFlags: TypeAlias = Annotated[int, Meta(ge=0, le=2 * AT_FIXED_TIME - 1)]
"""A combination of the flags above. Decoding checks the range, in which all bits are flags."""

MAY_BE_NEEDED: Final = HAS_DEPENDANTS | OWNS_SCOPE | CHAINED
"""No other job needs a finished job that has none of these flags. Indexes of the stores contain this number."""

SETTLES_ALONE: Final = STRICT_ORDER | STEPPED | REPORT_ORPHAN | OWN_LEASE | UNRECORDED | AT_FIXED_TIME
"""The completion of a job that has no other flag than these changes nothing but its own row."""

SETTLES_IN_SCOPE: Final = SETTLES_ALONE | GROUPED
"""The completion of a job that has no other flag than these changes nothing but its own row and the scope of which it
is a member."""


_FIELD_OF_FLAG: Final = {
    KEYED: "idempotency_key",
    GROUPED: "scope_id",
    ON_FAILURE: "on_failure",
    CALLBACK: "callback_url",
    OWN_LEASE: "lease_us",
}
"""A record that has one of these flags must have a value in the field named here."""


def contradicted_flags(job: JobRecord, unread: Collection[str]) -> int:
    """Returns the flags of a record that its fields contradict. The fields in `unread` could not be read and contradict
    nothing."""
    return sum(
        flag
        for flag, field in _FIELD_OF_FLAG.items()
        if job.flags & flag and field not in unread and getattr(job, field) is None
    )


def flags_of_columns(job: JobRecord) -> int:
    """Returns the flags that follow from the fields of a record, for a record whose own flags cannot be read. It counts
    as needed by other jobs, to be safe."""
    return HAS_DEPENDANTS | sum(flag for flag, field in _FIELD_OF_FLAG.items() if getattr(job, field) is not None)


def settles_alone(flags: int) -> bool:
    """Whether the completion of a job with these flags changes nothing but its own row."""
    return flags & ~SETTLES_ALONE == 0
