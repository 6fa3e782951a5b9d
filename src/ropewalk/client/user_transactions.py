"""Jobs are submitted inside a transaction of the user (`connection=`), and published when the user commits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from ropewalk.client.app_state import AppState
from ropewalk.errors import InvalidInput
from ropewalk.observe.events import without_duplicates
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import USER_TRANSACTIONS
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import AfterCommit, Answers, Awaited, Join, UserConnection

T = TypeVar("T")


class LoopThread(Protocol):
    """An event loop in another thread. `call` runs a coroutine there and waits for its result."""

    def call(self, work: Coroutine[Any, Any, T]) -> T: ...


async def submit_within(app_state: AppState, connection: UserConnection, submissions: Sequence[Submission]) -> Answers:
    """Submits in the transaction of the connection, on the loop that the connection belongs to. A blocking connection
    is used in this thread, as its owner uses it."""
    join = await USER_TRANSACTIONS.of(app_state.store).join(connection, submissions)
    with app_state.traced(submissions) as traced:
        after_commit = _publisher(app_state, traced, asyncio.get_running_loop())
        if isinstance(join, Awaited):
            return await join.submit(traced, after_commit)
        return join.submit(traced, after_commit)


def submit_within_here(
    app_state: AppState, connection: UserConnection, submissions: Sequence[Submission], portal: LoopThread
) -> Answers:
    """Submits in the transaction of a blocking connection, from code without an event loop. The connection is used in
    this thread, and everything else happens on the loop of the portal."""
    join, loop = portal.call(_joined(app_state, connection, submissions))
    if isinstance(join, Awaited):
        raise InvalidInput(
            f"connection={type(connection).__name__} belongs to an event loop, where app.sync would block it: "
            "await app.enqueue(...) there",
            field="connection",
        )
    with app_state.traced(submissions) as traced:
        return join.submit(traced, _publisher(app_state, traced, loop))


async def _joined(
    app_state: AppState, connection: UserConnection, submissions: Sequence[Submission]
) -> tuple[Join, asyncio.AbstractEventLoop]:
    return await USER_TRANSACTIONS.of(app_state.store).join(connection, submissions), asyncio.get_running_loop()


def _publisher(app_state: AppState, submissions: Sequence[Submission], loop: asyncio.AbstractEventLoop) -> AfterCommit:
    """Returns the function to call after the commit, in any thread. It wakes workers, counts the jobs, and has hooks
    called on `loop` unless that is closed."""

    def committed(answers: Answers) -> None:
        pairs = zip(submissions, answers, strict=True)
        fresh = [each for submission, accepted in pairs for each in without_duplicates(submission.jobs, accepted)]
        if not fresh:
            return
        app_state.store.notifier.publish(Hint(ready=tuple({new.queue for new, _ in fresh})))
        app_state.events.count_queued(fresh)
        if app_state.events.has_listeners and not loop.is_closed():
            loop.call_soon_threadsafe(app_state.events.emit_queued, fresh)

    return committed
