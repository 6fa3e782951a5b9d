"""The parts of an answer that two stores must agree on.

The port leaves the order of some lists and the wording of errors to each store. Each function here takes an answer and
returns it in a form that is equal for two stores if they agree on everything else.
"""

from __future__ import annotations

from msgspec import structs

from ropewalk.errors import LeaseLost, QuotaExceeded, RopewalkError
from ropewalk.ports.store.claims import Claimed
from ropewalk.ports.store.consequences import Consequences, Moved
from ropewalk.ports.store.leases import Renewed, Settlements
from ropewalk.ports.store.operations import Cancellations, Purged
from ropewalk.ports.store.submission import SubmitAnswer
from ropewalk.ports.store.workflows import EndAnswer


def ordered_consequences(consequences: Consequences) -> Consequences:
    """Sort moved jobs and closed groups."""
    return structs.replace(consequences, moved=moved(consequences.moved), closed=sorted(consequences.closed))


def claimed(claimed: Claimed) -> Claimed:
    """Keep the order of the claimed jobs, and sort what else the claim moved."""
    return structs.replace(claimed, moved=moved(claimed.moved), closed=sorted(claimed.closed))


def settled(settlements: Settlements) -> tuple[object, Consequences]:
    """Compare only the types of errors, and sort the consequences."""
    answers = [(structs.replace(each, refused=None), type(each.refused)) for each in settlements.settled]
    return answers, ordered_consequences(settlements.consequences)


def cancelled(cancellations: Cancellations) -> tuple[object, Consequences]:
    """Keep the answers as they are, and sort the consequences."""
    return cancellations.answers, ordered_consequences(cancellations.consequences)


def purged(answer: Purged) -> Purged:
    """Sort the cancelled jobs and the consequences."""
    cancelled = sorted(answer.cancelled, key=lambda job: job.seq)
    return structs.replace(answer, cancelled=cancelled, consequences=ordered_consequences(answer.consequences))


def ended(answer: EndAnswer) -> EndAnswer:
    """Sort the consequences of an end from outside."""
    return structs.replace(
        answer, consequences=None if answer.consequences is None else ordered_consequences(answer.consequences)
    )


def renewed(renewed: Renewed) -> Renewed:
    """Sort the lost leases and the requested cancellations."""
    return Renewed(
        lost=sorted(renewed.lost, key=lambda each: each.seq),
        cancels=sorted(renewed.cancels, key=lambda each: each.seq),
        busy=renewed.busy,
        drain=renewed.drain,
    )


def submitted(answers: list[SubmitAnswer]) -> list[object]:
    """Replace errors by their types and the facts in them, without their messages."""
    return [_refused(answer) if isinstance(answer, RopewalkError) else answer for answer in answers]


def _refused(error: RopewalkError) -> object:
    match error:
        case LeaseLost():
            return type(error), error.reason
        case QuotaExceeded():
            return type(error), error.limit, error.current, error.maximum, error.retry_after
        case _:
            return type(error)


def moved(moved: list[Moved]) -> list[Moved]:
    """Sort moved jobs by their numbers."""
    return sorted(moved, key=lambda each: each.job.seq)
