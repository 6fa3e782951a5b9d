"""What of an answer two stores must agree on: everything but the order and the words the port leaves to them."""

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
    return structs.replace(consequences, moved=moved(consequences.moved), closed=sorted(consequences.closed))


def claimed(claimed: Claimed) -> Claimed:
    return structs.replace(claimed, moved=moved(claimed.moved), closed=sorted(claimed.closed))


def settled(settlements: Settlements) -> tuple[object, Consequences]:
    answers = [(structs.replace(each, refused=None), type(each.refused)) for each in settlements.settled]
    return answers, ordered_consequences(settlements.consequences)


def cancelled(cancellations: Cancellations) -> tuple[object, Consequences]:
    return cancellations.answers, ordered_consequences(cancellations.consequences)


def purged(answer: Purged) -> Purged:
    cancelled = sorted(answer.cancelled, key=lambda job: job.seq)
    return structs.replace(answer, cancelled=cancelled, consequences=ordered_consequences(answer.consequences))


def resolved(answer: EndAnswer) -> EndAnswer:
    return structs.replace(
        answer, consequences=None if answer.consequences is None else ordered_consequences(answer.consequences)
    )


def renewed(renewed: Renewed) -> Renewed:
    return Renewed(
        lost=sorted(renewed.lost, key=lambda each: each.seq),
        cancels=sorted(renewed.cancels, key=lambda each: each.seq),
        busy=renewed.busy,
        drain=renewed.drain,
    )


def submitted(answers: list[SubmitAnswer]) -> list[object]:
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
    return sorted(moved, key=lambda each: each.job.seq)
