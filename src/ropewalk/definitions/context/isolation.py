"""The port behind which a handler runs in a process of its own."""

from __future__ import annotations

from typing import Protocol

from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.domain.jobs.outcome import Outcome


class Isolation(Protocol):
    async def run(self, attempt: AttemptPort) -> Outcome:
        """Run the attempt's handler in another process and say how it ended.

        Decoding, the call, encoding and the classification of an error happen over there. A process that dies
        under the handler is `Crashed`. Cancelling this call kills the process before it raises.
        """
        ...

    async def close(self) -> None:
        """End every process; handlers still running are killed."""
        ...
