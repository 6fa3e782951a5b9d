"""A job whose arguments do not fit the code of the worker that claimed it, while other code may be running elsewhere.

During a deployment old and new workers run side by side. A worker that cannot read a job's arguments gives it back,
its attempt with it, and the job keeps in its error which workers have refused it. It fails for good (`bad_input`) when
no live worker is left that has not, or when it was refused too often or for too long.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.time import HOUR, SECOND, Instant, Span

CODE: Final = "misfit"
"""Code of the error that such a job carries while it waits for another worker."""
REFUSALS_MAX: Final = 100
REFUSED_FOR_MAX: Final[Span] = HOUR
DELAY_US: Final[Span] = SECOND // 2
DELAY_MAX_US: Final[Span] = 30 * SECOND
QUICK_REFUSALS: Final = 8
"""Number of refusals after which the wait between two of them doubles."""

_WORKERS, _TIMES, _SINCE = "refused_by", "refusals", "refused_since"


class Refusals(Struct, frozen=True):
    """The refusals of one job so far."""

    workers: tuple[str, ...]
    times: int
    since: Instant
    """Time of the first one, by the store's clock."""

    def too_many(self, now: Instant) -> bool:
        return self.times >= REFUSALS_MAX or now - self.since >= REFUSED_FOR_MAX

    @property
    def delay_us(self) -> Span:
        """How long the job waits before somebody else may try."""
        return min(DELAY_MAX_US, DELAY_US << max(0, self.times - QUICK_REFUSALS))

    def told(self, error: ErrorInfo) -> ErrorInfo:
        """The error to keep with the job until another worker claims it."""
        kept = {_WORKERS: " ".join(self.workers), _TIMES: str(self.times), _SINCE: str(self.since)}
        return structs.replace(error, code=CODE, context={**error.context, **kept})


def is_misfit(error: ErrorInfo | None) -> bool:
    return error is not None and error.code == CODE


def refusals_of(error: ErrorInfo | None) -> Refusals | None:
    """The refusals that this error of a job tells of; None where it tells of none, or cannot be read."""
    if error is None or error.code != CODE:
        return None
    try:
        times, since = int(error.context[_TIMES]), int(error.context[_SINCE])
    except (KeyError, ValueError):
        return None
    return Refusals(tuple(error.context.get(_WORKERS, "").split()), times, since)


def refused(before: ErrorInfo | None, worker: str, now: Instant) -> Refusals:
    """One refusal more, by this worker."""
    so_far = refusals_of(before) or Refusals((), 0, now)
    return Refusals(tuple(dict.fromkeys((*so_far.workers, worker))), so_far.times + 1, so_far.since)
