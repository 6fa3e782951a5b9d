"""What this server did or saw being done: numbered, the newest 10,000 kept, given to every reader that wants it.

It is never a log of everything: other servers and workers do things that this process does not hear of.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from ropewalk.client.app_state import AppState
from ropewalk.domain import failure
from ropewalk.http.events.shapes import StreamedEvent
from ropewalk.http.jobs.shapes import ErrorInfo
from ropewalk.http.wire import ErrorCategory, JobState, timestamp
from ropewalk.observe.events import Event

KEPT_MAX: Final = 10_000

Reader: TypeAlias = Callable[[int, StreamedEvent], None]

_STATES: Final = {
    "started": JobState.RUNNING,
    "succeeded": JobState.COMPLETED,
    "expired": JobState.DEAD_LETTER,
    "cancelled": JobState.CANCELLED,
    "dead_lettered": JobState.DEAD_LETTER,
}


class Feed:
    """The events of this process. Nothing is listened to while nobody reads."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self.server_id: Final = app_state.runtime.token()
        self._count = 0
        self._kept: deque[tuple[int, StreamedEvent]] = deque(maxlen=KEPT_MAX)
        self._readers: set[Reader] = set()
        self._listening: asyncio.Task[None] | None = None

    def attach(self, reader: Reader) -> Callable[[], None]:
        """Calls the reader with every event from now on, until the returned function is called."""
        self._readers.add(reader)
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._listen())
        return lambda: self._readers.discard(reader)

    def since(self, event_id: str) -> list[tuple[int, StreamedEvent]] | None:
        """The events after the one with this id, or None if they are not all here."""
        server, _, number = event_id.rpartition("-")
        if server != self.server_id or not number.isascii() or not number.isdigit():
            return None
        first_kept = self._kept[0][0] if self._kept else self._count + 1
        if int(number) > self._count or int(number) + 1 < first_kept:
            return None
        return [each for each in self._kept if each[0] > int(number)]

    def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def _listen(self) -> None:
        async for event in self._app_state.events.stream():
            self._count += 1
            streamed = _streamed(event)
            self._kept.append((self._count, streamed))
            for reader in list(self._readers):
                reader(self._count, streamed)


def shown_error(error: failure.ErrorInfo | None) -> ErrorInfo | None:
    """An error without its traceback, which is too long for a stream."""
    if error is None:
        return None
    return ErrorInfo(
        category=ErrorCategory.of(error.category),
        code=error.code or error.type,
        message=error.message,
        stack_trace=None,
    )


def _streamed(event: Event) -> StreamedEvent:
    state = _STATES.get(event.kind)
    if event.kind == "failed":
        state = JobState.RETRYING if event.will_retry else JobState.FAILED
    return StreamedEvent(
        kind=event.kind.upper(),
        job_id=event.job_id,
        type=event.type,
        queue=event.queue,
        tenant=event.tenant,
        state=state,
        attempt=event.attempt,
        group_id=event.group_id,
        rev=None,
        at=timestamp(event.at_us),
        error=shown_error(event.error),
    )
