"""Enqueueing inside the caller's own transaction, and what is told once it committed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from ropewalk.client.app_state import AppState
from ropewalk.errors import InvalidInput
from ropewalk.observe.events import new_ones
from ropewalk.observe.tracing import Sending
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import USER_TRANSACTIONS
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Awaited, Join, UserConnection

T = TypeVar("T")


class LoopThread(Protocol):
    """A loop in another thread: `call` waits for the answer."""

    def call(self, work: Coroutine[Any, Any, T]) -> T: ...


async def submit_within(core: AppState, connection: UserConnection, submissions: Sequence[Submission]) -> Answers:
    """On the connection's own loop; a connection that blocks is used right here, as its owner would."""
    join = await USER_TRANSACTIONS.of(core.store).join(connection, submissions)
    with Sending(submissions, core.tracing, core.events) as traced:
        after_commit = _publisher(core, traced, asyncio.get_running_loop())
        if isinstance(join, Awaited):
            return await join.submit(traced, after_commit)
        return join.submit(traced, after_commit)


def submit_within_here(
    core: AppState, connection: UserConnection, submissions: Sequence[Submission], portal: LoopThread
) -> Answers:
    """The same in this very thread, for code without a loop. What is not the connection's happens on the portal's."""
    join, loop = portal.call(_joined(core, connection, submissions))
    if isinstance(join, Awaited):
        raise InvalidInput(
            f"connection={type(connection).__name__} belongs to an event loop, where app.sync would block it: "
            "await app.enqueue(...) there",
            field="connection",
        )
    with Sending(submissions, core.tracing, core.events) as traced:
        return join.submit(traced, _publisher(core, traced, loop))


async def _joined(
    core: AppState, connection: UserConnection, submissions: Sequence[Submission]
) -> tuple[Join, asyncio.AbstractEventLoop]:
    return await USER_TRANSACTIONS.of(core.store).join(connection, submissions), asyncio.get_running_loop()


def _publisher(core: AppState, submissions: Sequence[Submission], loop: asyncio.AbstractEventLoop) -> AfterCommit:
    """A commit is told in any thread. Hooks are called on the loop; where that is closed, nobody listens any more."""

    def committed(answers: Answers) -> None:
        pairs = zip(submissions, answers, strict=True)
        fresh = [each for asked, given in pairs for each in new_ones(asked.jobs, given)]
        if not fresh:
            return
        core.store.notifier.publish(Hint(ready=tuple({new.queue for new, _ in fresh})))
        core.events.count_queued(fresh)
        if core.events.heard_at_all and not loop.is_closed():
            loop.call_soon_threadsafe(core.events.tell_queued, fresh)

    return committed
