"""Misfits: jobs whose arguments do not fit the code of the worker that claimed them, but may fit other code.

During a deployment old and new workers run side by side. A worker that cannot read the arguments of a job gives the
job back, and the attempt is not counted. The job keeps in its error which workers have refused it. It fails for good
(`bad_input`) when every live worker has refused it, or when it was refused too often or for too long.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.time import HOUR, SECOND, Instant, Span

CODE: Final = "misfit"
"""The error of a misfit has this code while the job waits for another worker."""
REFUSALS_MAX: Final = 100
"""A misfit that was refused this often fails for good."""
REFUSED_FOR_MAX: Final[Span] = HOUR
"""A misfit whose first refusal is this long ago fails for good."""
DELAY_US: Final[Span] = SECOND // 2
"""A misfit waits this long after each of its first refusals."""
DELAY_MAX_US: Final[Span] = 30 * SECOND
"""A misfit never waits longer than this for another worker."""
QUICK_REFUSALS: Final = 8
"""From this number of refusals on, each wait is twice as long as the one before."""

_WORKERS, _TIMES, _SINCE = "refused_by", "refusals", "refused_since"


class Refusals(Struct, frozen=True):
    """The refusals of one job so far."""

    workers: tuple[str, ...]
    """The ids of the workers that refused the job."""
    times: int
    """The number of refusals; a worker may refuse a job more than once."""
    since: Instant
    """The instant of the first refusal, by the store's clock."""

    def too_many(self, now: Instant) -> bool:
        """Whether the job was refused too often or for too long, so that it fails for good."""
        return self.times >= REFUSALS_MAX or now - self.since >= REFUSED_FOR_MAX

    @property
    def delay_us(self) -> Span:
        """The job waits this long before another worker may claim it."""
        return min(DELAY_MAX_US, DELAY_US << max(0, self.times - QUICK_REFUSALS))

    def recorded_in(self, error: ErrorInfo) -> ErrorInfo:
        """Returns the error that the job keeps until another worker claims it: `error` with these refusals."""
        refusals = {_WORKERS: " ".join(self.workers), _TIMES: str(self.times), _SINCE: str(self.since)}
        return structs.replace(error, code=CODE, context={**error.context, **refusals})


def is_misfit(error: ErrorInfo | None) -> bool:
    return error is not None and error.code == CODE


def refusals_of(error: ErrorInfo | None) -> Refusals | None:
    """Reads the refusals from the error of a job; None if the error contains none, or none that can be read."""
    if error is None or error.code != CODE:
        return None
    try:
        times, since = int(error.context[_TIMES]), int(error.context[_SINCE])
    except (KeyError, ValueError):
        return None
    return Refusals(tuple(error.context.get(_WORKERS, "").split()), times, since)


def refused(before: ErrorInfo | None, worker: str, now: Instant) -> Refusals:
    """Returns the refusals of a job with one more by this worker. `before` is the error of the job so far."""
    so_far = refusals_of(before) or Refusals((), 0, now)
    return Refusals(tuple(dict.fromkeys((*so_far.workers, worker))), so_far.times + 1, so_far.since)
