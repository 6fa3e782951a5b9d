"""The bound on the memory of a handler's process. It holds while the handler runs, so that its failure can be reported.

It counts the memory that the process can write to and shares with nobody (RLIMIT_DATA). It does not count shared memory
and files that are mapped for reading, which make an address space large and cost little. Only Linux enforces it.
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
"""The code of the error of a handler that went over its bound."""

EXIT_CODE: Final = 86
"""With this code a process ends that went over its bound where it could not send an outcome any more."""


def check_supported(types: Iterable[JobType[..., Any, Any]]) -> None:
    """Raises Unsupported for a type with a memory bound that this system would not enforce."""
    bounded = [each for each in types if each.options.memory_mb is not None]
    if bounded and sys.platform != "linux":
        first = bounded[0]
        raise Unsupported(
            f"memory_mb={first.options.memory_mb} of {first.name}: {sys.platform} holds no process to such a bound, "
            "only Linux does; leave it out, or leave the type out with app.worker(types=[...])"
        )


@contextmanager
def bounded_to(memory_mb: int | None) -> Generator[None]:
    """Bound the memory of this process in this block: allocations over it raise MemoryError. None sets no bound."""
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


def naming_bound(outcome: Outcome, memory_mb: int) -> Outcome:
    """The outcome of a MemoryError under a bound, with the bound named in its error."""
    match outcome:
        case Errored(error):
            return structs.replace(outcome, error=_over_bound(error, memory_mb, Category.SYSTEM))
        case Aborted(error):
            return structs.replace(outcome, error=_over_bound(error, memory_mb, error.category))
        case _:
            return outcome


def exceeded_silently(memory_mb: int) -> Outcome:
    """The outcome of an attempt whose process had no memory left to send an outcome."""
    return Errored(_over_bound(ErrorInfo(category=Category.SYSTEM, type="MemoryError", message=""), memory_mb))


def was_exceeded(outcome: Outcome) -> bool:
    """Whether this outcome says that the bound was exceeded. The process is not used again, as it may still be full."""
    return isinstance(outcome, Errored | Aborted) and outcome.error.code == CODE


def _over_bound(error: ErrorInfo, memory_mb: int, category: Category = Category.SYSTEM) -> ErrorInfo:
    said = f" ({error.message})" if error.message not in ("", "MemoryError") else ""
    message = f"the handler's process went over memory_mb={memory_mb}{said}"
    return structs.replace(error, category=category, code=CODE, message=message)
