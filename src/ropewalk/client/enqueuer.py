"""The enqueuer sends concurrent submissions of one event loop to the store in one commit. Each caller continues only
when its own job is durable.

Submissions that arrive while a commit is under way are sent together in the next one. So batches grow with the load,
and a single submission waits for nothing. If a submission needs a row that an open transaction of a user has locked, it
is sent again alone and waits for the lock, so that it delays no other submission.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from ropewalk.errors import RopewalkError
from ropewalk.observe.events import EventHub
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Accepted, MustWait, Submission

SUBMISSIONS_MAX: Final = 1000
"""One commit contains this many submissions at most."""

Pending: TypeAlias = "tuple[Submission, asyncio.Future[list[Accepted]]]"
"""A submission, and the future for which its caller waits."""


class Enqueuer:
    """The submissions of one event loop that are on their way to the store."""

    def __init__(self, store: Store, runtime: Runtime, events: EventHub) -> None:
        self._store = store
        self._runtime = runtime
        self._events = events
        self._pending: list[Pending] = []
        self._sending = False

    async def submit(self, submission: Submission) -> list[Accepted]:
        """Sends a submission and returns the answer. Raises the error by which the store refused it."""
        answer: asyncio.Future[list[Accepted]] = asyncio.get_running_loop().create_future()
        self._pending.append((submission, answer))
        if not self._sending:
            self._sending = True
            self._runtime.spawn(self._send_all(), name="ropewalk-enqueuer")
        return await answer

    async def _send_all(self) -> None:
        try:
            while self._pending:
                batch = self._pending[:SUBMISSIONS_MAX]
                del self._pending[:SUBMISSIONS_MAX]
                await self._send(batch, wait=False)
        finally:
            self._sending = False

    async def _send(self, batch: Sequence[Pending], *, wait: bool) -> None:
        try:
            answers = await self._store.submit([submission for submission, _ in batch], wait=wait)
        except BaseException as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error if isinstance(error, Exception) else RuntimeError("the loop is ending"))
                    answer.exception()  # This keeps asyncio from warning if the caller has been cancelled.
            if not isinstance(error, Exception):
                raise
            return
        ready: set[str] = set()
        for pending, accepted in zip(batch, answers, strict=True):
            ready.update(self._answer(pending, accepted))
        if ready:
            self._store.notifier.publish(Hint(ready=tuple(ready)))

    def _answer(self, pending: Pending, accepted: list[Accepted] | RopewalkError) -> set[str]:
        """Passes the answer to the caller. Returns the queues that have new jobs."""
        submission, answer = pending
        if isinstance(accepted, MustWait):
            self._runtime.spawn(self._send([pending], wait=True), name="ropewalk-enqueuer-waiting")
            return set()
        if isinstance(accepted, RopewalkError):
            if not answer.done():
                answer.set_exception(accepted)
            return set()
        queues = self._queued(submission, accepted)
        if not answer.done():
            answer.set_result(accepted)
        return queues

    def _queued(self, submission: Submission, accepted: list[Accepted]) -> set[str]:
        """Publishes the new jobs to hooks. Returns the queues that have new jobs for a worker to claim."""
        self._events.publish_accepted(submission.jobs, accepted)
        answered = zip(submission.jobs, accepted, strict=True)
        return {new.queue for new, answer in answered if not answer.duplicate and answer.leased is None}
