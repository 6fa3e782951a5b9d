"""The bound on what a handler's process may use: set around the handler alone, so that its failure can still be told.

Counts what the process has for itself to write to (RLIMIT_DATA), not files mapped for reading nor shared memory: those
would make an address space large that costs little. Only Linux holds a process to it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final

from msgspec import structs

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.outcome import Aborted, Errored, Outcome
from ropewalk.errors import Unsupported

MEBIBYTE: Final = 1024 * 1024
CODE: Final = "memory"
EXIT_CODE: Final = 86
"""of a process that met its bound where no exception could be told"""


def check_supported(types: Iterable[JobType[..., Any, Any]]) -> None:
    """Raises Unsupported for a bound that nobody would keep here."""
    bounded = [each for each in types if each.options.memory_mb is not None]
    if bounded and sys.platform != "linux":
        first = bounded[0]
        raise Unsupported(
            f"memory_mb={first.options.memory_mb} of {first.name}: {sys.platform} holds no process to such a bound, "
            "only Linux does; leave it out, or leave the type out with app.worker(types=[...])"
        )


@contextmanager
def bounded_to(memory_mb: int | None) -> Generator[None]:
    """Over it, whatever asks for memory gets a MemoryError. None: no bound."""
    if memory_mb is None:
        yield
        return
    import resource  # there only on POSIX

    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = memory_mb * MEBIBYTE
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def told(outcome: Outcome, memory_mb: int) -> Outcome:
    """What a MemoryError under a bound was judged to be, saying which bound that was."""
    match outcome:
        case Errored(error):
            return structs.replace(outcome, error=_named(error, memory_mb, Category.SYSTEM))
        case Aborted(error):
            return structs.replace(outcome, error=_named(error, memory_mb, error.category))
        case _:
            return outcome


def met_silently(memory_mb: int) -> Outcome:
    """The process had no memory left even to say so."""
    return Errored(_named(ErrorInfo(category=Category.SYSTEM, type="MemoryError", message=""), memory_mb))


def used_up(outcome: Outcome) -> bool:
    """Whether the process that said so is better not used again: what filled it may still be there."""
    return isinstance(outcome, Errored | Aborted) and outcome.error.code == CODE


def _named(error: ErrorInfo, memory_mb: int, category: Category = Category.SYSTEM) -> ErrorInfo:
    said = f" ({error.message})" if error.message not in ("", "MemoryError") else ""
    message = f"the handler's process went over memory_mb={memory_mb}{said}"
    return structs.replace(error, category=category, code=CODE, message=message)
