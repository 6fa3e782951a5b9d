"""What every SQL store does inside a user's transaction, and how it tells one package's connections from another's."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.sql import submission
from ropewalk.backends.sql.submission import Admit
from ropewalk.backends.sql.tx import Tx
from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.ports.store.messages import Submission
from ropewalk.ports.store.user_transactions import Answers


def submit_all(tx: Tx, submissions: Sequence[Submission], admit: Admit) -> Answers:
    """All of them, or the first refusal is raised."""
    answers: Answers = []
    for answer in submission.submit(tx, tx.lanes, submissions, admit):
        if isinstance(answer, RopewalkError):
            raise answer
        answers.append(answer)
    return answers


def queues_served(submissions: Sequence[Submission], answers: Answers) -> list[str]:
    """The queues that got new work, in one order for the same ones."""
    pairs = zip(submissions, answers, strict=True)
    new = ((job, answer) for asked, given in pairs for job, answer in zip(asked.jobs, given, strict=True))
    return sorted({job.queue for job, answer in new if not answer.duplicate})


def kinds_of(connection: object, package: str) -> set[str]:
    """The names of its types that this package made; none: it is another's."""
    return {base.__name__ for base in type(connection).__mro__ if base.__module__.partition(".")[0] == package}


def unknown(connection: object, wanted: str) -> InvalidInput:
    kind = type(connection)
    return InvalidInput(
        f"connection={kind.__module__}.{kind.__qualname__} is none this store can join: pass {wanted}",
        field="connection",
    )
