"""How a handler is left when it sleeps or waits: by an exception that passes through `except Exception`."""

from __future__ import annotations

from ropewalk.domain.workflow.completion import Suspension


class Suspend(BaseException):
    """Raised by ctx.sleep and ctx.wait_for. The handler runs again from the top when the wait is over."""

    def __init__(self, suspension: Suspension) -> None:
        super().__init__(f"suspended at {suspension.name!r}")
        self.suspension = suspension
