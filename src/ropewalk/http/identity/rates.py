"""How many requests a token may send to this server per second."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ropewalk.http.errors import ErrorCode, HttpError
from ropewalk.http.identity.identity import Identity
from ropewalk.ports.runtime import Runtime

REMEMBERED_MAX: Final = 10_000


class RequestRates:
    """A bucket of tokens for each identity with a rate. A full bucket holds what one second allows, at least one."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, identity: Identity) -> dict[str, str]:
        """Counts a request, and returns the headers that tell what is left. Raises HttpError if nothing is."""
        rate = identity.requests_per_second
        if rate is None:
            return {}
        size, now = max(1.0, rate), self._runtime.monotonic()
        filled_at, level = self._buckets.get(identity.subject, (now, size))
        level = min(size, level + (now - filled_at) * rate)
        refused = level < 1
        left = level if refused else level - 1
        self._buckets[identity.subject] = (now, left)
        self._buckets.move_to_end(identity.subject)
        if len(self._buckets) > REMEMBERED_MAX:
            self._buckets.popitem(last=False)
        headers = {
            "RateLimit-Policy": f'"requests";q={size:g};w=1',
            "RateLimit": f'"requests";r={int(left)};t=1',
        }
        if refused:
            raise HttpError(
                ErrorCode.QUOTA_EXCEEDED,
                f"this token may send {rate:g} requests per second to each server",
                headers=headers,
                limit="requests",
                current=int(size),
                maximum=int(size),
                retry_after=(1 - level) / rate,
            )
        return headers
