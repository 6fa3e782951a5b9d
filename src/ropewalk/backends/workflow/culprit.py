"""Finds the record that was at fault when a rule of the domain raised an unexpected error.

A transaction often changes many records, most of which have nothing to do with one another. Code that changes them one
by one says which of them it is changing (`blaming`), and an error carries this record with it. The store then does the
same work again and passes over the record (backends/sql/connection_thread.py): it stays as it is, and the rest goes on.
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
    """A record whose change raised an unexpected error."""

    kind: RecordKind
    number: int
    """The `seq` of the job, or the id of the scope."""
    name: str


def is_unexpected(error: BaseException) -> bool:
    """Whether the error is one that code raises when it meets a situation that it rules out."""
    return isinstance(error, _UNEXPECTED) and not isinstance(error, RopewalkError)


@contextmanager
def blaming(kind: RecordKind, number: int, name: str) -> Generator[None]:
    """Blames unexpected errors that are raised inside this context on a record, unless another one is blamed
    already."""
    try:
        yield
    except Exception as error:
        if (is_unexpected(error) or isinstance(error, DecodeError)) and culprit_of(error) is None:
            vars(error)[_CULPRIT] = Culprit(kind, number, name)
            error.add_note(f"while {name} was changed")
        raise


def culprit_of(error: BaseException) -> Culprit | None:
    """Returns the record that is blamed for an error; None if there is none."""
    found: Culprit | None = vars(error).get(_CULPRIT)
    return found


def change_each(unit_of_work: UnitOfWork, jobs: Iterable[JobRecord], change: Callable[[JobRecord], object]) -> None:
    """Changes these jobs one after another, except those that this transaction passes over."""
    for job in jobs:
        if not unit_of_work.passes_over("job", job.seq):
            with blaming("job", job.seq, f"job {job.id}"):
                change(job)
