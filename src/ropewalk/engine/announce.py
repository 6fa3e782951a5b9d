"""After a commit: tell hooks what happened to jobs, and wake whoever waits for them or could run them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.job import JobRecord
from ropewalk.domain.states import SETTLING, Move, Status
from ropewalk.engine.events import EventHub
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store import Store

HINT_IDS_MAX: Final = 200

_WAITING: Final = Status.WAITING


class News(Struct, frozen=True, gc=False):
    job: JobRecord
    move: Move
    error: ErrorInfo | None


def announce(news: Iterable[News], *, store: Store, events: EventHub, runtime: Runtime) -> None:
    finished: list[str] = []
    ready: set[str] = set()
    now = runtime.now()
    for each in news:
        job, move = each.job, each.move
        if SETTLING[move] is _WAITING:
            ready.add(job.queue)
        else:
            finished.append(job.id)
            if job.on_failure is not None and move is not Move.COMPLETE:
                ready.add(job.on_failure.queue)
        if events.heard(job.type):
            events.moved(job, move, at=now, error=each.error)
    if finished or ready:
        many = len(finished) > HINT_IDS_MAX
        store.notifier.publish(Hint(ready=tuple(ready), finished=tuple(finished[:HINT_IDS_MAX]), many=many))
