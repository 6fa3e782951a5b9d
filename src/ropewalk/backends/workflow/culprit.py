"""Which record was at fault when a rule of the domain raised an error that nobody expects.

A transaction often changes many records, most of which have nothing to do with one another. So whoever changes them one
by one says which one is at hand (`blaming`), and the error carries that with it. The store then does the same work
again and passes over that record (backends/sql/connection_thread.py): it stays as it is, and all others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec import DecodeError

from ropewalk.backends.workflow.unit_of_work import RecordKind, UnitOfWork
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.errors import RopewalkError

_UNEXPECTED: Final = (AssertionError, LookupError, ValueError, TypeError, ArithmeticError, AttributeError)
_CULPRIT: Final = "ropewalk_culprit"
"""The attribute of an error that names its culprit."""


class Culprit(NamedTuple):
    kind: RecordKind
    number: int
    """The `seq` of the job, or the id of the scope."""
    name: str


def is_unexpected(error: BaseException) -> bool:
    """Whether it is an error that code of ours raises where it met what it rules out."""
    return isinstance(error, _UNEXPECTED) and not isinstance(error, RopewalkError)


@contextmanager
def blaming(kind: RecordKind, number: int, name: str) -> Generator[None]:
    """An unexpected error that is raised inside is blamed on this record, unless another one is blamed already."""
    try:
        yield
    except Exception as error:
        if (is_unexpected(error) or isinstance(error, DecodeError)) and culprit_of(error) is None:
            vars(error)[_CULPRIT] = Culprit(kind, number, name)
            error.add_note(f"while {name} was changed")
        raise


def culprit_of(error: BaseException) -> Culprit | None:
    found: Culprit | None = vars(error).get(_CULPRIT)
    return found


def change_each(unit_of_work: UnitOfWork, jobs: Iterable[JobRecord], change: Callable[[JobRecord], object]) -> None:
    """Change these jobs one after another, but for those that this transaction passes over."""
    for job in jobs:
        if not unit_of_work.passes_over("job", job.seq):
            with blaming("job", job.seq, f"job {job.id}"):
                change(job)
