"""The lines that one attempt logged and the store does not have yet. If there are too many, the oldest ones are
lost."""

from __future__ import annotations

from collections import deque
from threading import Lock

from ropewalk.domain.logs import LINES_MAX, LogLine
from ropewalk.domain.time import Instant


class LogBuffer:
    """The unsent lines of one attempt. The handler's thread adds lines; the heartbeat or the settler sends them,
    whichever comes first."""

    def __init__(self, attempt: int) -> None:
        self._attempt = attempt
        self._lock = Lock()
        self._position = 0
        self._lines: deque[LogLine] = deque(maxlen=LINES_MAX)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, level: int, message: str, fields: str | None, at: Instant) -> None:
        """Adds a line."""
        with self._lock:
            self._position += 1
            line = LogLine(
                position=self._position, attempt=self._attempt, at=at, level=level, message=message, fields=fields
            )
            self._lines.append(line)

    def unsent(self) -> tuple[LogLine, ...]:
        """Returns the lines that the store does not have yet."""
        with self._lock:
            return tuple(self._lines)

    def sent(self, lines: tuple[LogLine, ...]) -> None:
        """Removes lines that the store has accepted."""
        if not lines:
            return
        with self._lock:
            while self._lines and self._lines[0].position <= lines[-1].position:
                self._lines.popleft()
