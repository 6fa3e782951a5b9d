"""What a completion leaves behind it, and how an attempt ends for which that cannot be written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.jobs.outcome import Aborted
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.jobs.retry import BUILT_IN
from ropewalk.domain.jobs.transition import Settlement, decide
from ropewalk.domain.workflow.completion import Sequel
from ropewalk.errors import RopewalkError
from ropewalk.worker.context import Workbench

if TYPE_CHECKING:
    from ropewalk.worker.attempt import Attempt


def written_with(sequel: Sequel) -> list[NewJob]:
    """The jobs that came with a completion."""
    return [*sequel.children, *(() if sequel.continuation is None else (sequel.continuation,))]


def refused_for_good(attempt: Attempt, error: RopewalkError, bench: Workbench) -> Settlement:
    """A dependency that is not there or an id that is taken will be so next time, too: no further attempt."""
    told = ErrorInfo(
        category=Category.PERMANENT,
        code=code_of(error),
        type=type(error).__name__,
        message=clipped(f"it completed, but what should follow was refused: {error}"),
        worker=bench.owner,
        host=bench.host,
    )
    return decide(attempt.job, Aborted(told), BUILT_IN, 0.0, attempt.spent)


def code_of(error: RopewalkError) -> str:
    """The name of the exception as a code: NotFound → not_found."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
