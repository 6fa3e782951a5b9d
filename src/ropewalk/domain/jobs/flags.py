"""One bitmask per job that keeps a plain job out of every table it does not use.

A release that adds a flag writes the records that carry it in a newer format (record.RECORD_FORMAT), which older
workers leave alone. So a bit that this release does not know is damage in any record whose format it does know.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from msgspec import Meta

if TYPE_CHECKING:
    from ropewalk.domain.jobs.record import JobRecord

HAS_DEPENDANTS: Final = 1
GROUPED: Final = 2
"""a member of a scope"""
KEYED: Final = 4
CALLBACK: Final = 16
ON_FAILURE: Final = 32
STEPPED: Final = 64
STRICT_ORDER: Final = 128
"""priority without ageing; concerns order only, so such a job still settles as a plain one"""

OWNS_SCOPE: Final = 256
"""something was queued under it"""
CHAINED: Final = 512
"""a later member of a chain, or a first one that continued"""
SKIPPED: Final = 1024
"""completed without running, because its gate could no longer open"""
REPORT_ORPHAN: Final = 2048
"""somebody wants to hear when its group closes with nobody waiting"""
OWN_LEASE: Final = 4096
"""with a lease of its own, whatever its type's is"""
UNRECORDED: Final = 8192
"""its sender's trace is one that nobody records: asked of every attempt, hence not read from the text of it"""

CONTINUED: Final = 16_384
"""completed with a continuation: a later member of its chain holds the result"""
FORGOTTEN: Final = 32_768
"""its result was forgotten before the job itself (`Retention.results_us`)"""

AT_FIXED_TIME: Final = 65_536
"""Its `run_at` was asked for as an instant. Without this flag it was reckoned from the clock, as that of a retry is."""

StoredFlags: TypeAlias = Annotated[int, Meta(ge=0, le=2 * AT_FIXED_TIME - 1)]
"""The flags above, which are all bits up to the last one, and nothing else. The range is checked while decoding."""

MAY_BE_NEEDED: Final = HAS_DEPENDANTS | OWNS_SCOPE | CHAINED
"""a finished job with none of these is needed by no other job; indexes of the stores name this number"""

SETTLES_ALONE: Final = STRICT_ORDER | STEPPED | REPORT_ORPHAN | OWN_LEASE | UNRECORDED | AT_FIXED_TIME
"""a completed job with no other flag than these touches nothing but its own row"""

SETTLES_IN_SCOPE: Final = SETTLES_ALONE | GROUPED
"""a completed job with no other flag than these touches nothing but its own row and the scope it is a member of"""


_SAID_BY: Final = {
    KEYED: "idempotency_key",
    GROUPED: "scope_id",
    ON_FAILURE: "on_failure",
    CALLBACK: "callback_url",
    OWN_LEASE: "lease_us",
}
"""the field of a record without which a flag cannot be"""


def contradicted_flags(job: JobRecord, unread: Collection[str]) -> int:
    """The flags a record has without what they speak of, but for fields that could not be read."""
    return sum(
        flag
        for flag, field in _SAID_BY.items()
        if job.flags & flag and field not in unread and getattr(job, field) is None
    )


def flags_of_columns(job: JobRecord) -> int:
    """What the rest of the record says about its flags, where they cannot be read. It may be needed by others."""
    return HAS_DEPENDANTS | sum(flag for flag, field in _SAID_BY.items() if getattr(job, field) is not None)


def settles_alone(flags: int) -> bool:
    return flags & ~SETTLES_ALONE == 0
