"""AdaptiveDelay: poll less often while things go badly. Additive decrease, multiplicative increase; pure."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.domain.time import SECOND, Seconds, to_span
from ropewalk.errors import InvalidInput
from ropewalk.worker.policies.load import Load


class AdaptiveDelay(Struct, frozen=True, kw_only=True):
    """`app.worker(backpressure=AdaptiveDelay(failures=0.2, lag=0.05))`. Each signal that is not None is watched:

    failures: the share of attempts that ended in an error since the last poll; handler: how long handlers take; settle:
    how long the store takes to accept results; lag: how late the event loop is. One of them above its mark is bad: the
    delay is `first`, then `factor` times what it was, up to `max`. Otherwise it is `step` less, down to none.
    """

    failures: float | None = 0.1
    handler: Seconds | None = None
    settle: Seconds | None = None
    lag: Seconds | None = None
    first: Seconds = 0.1
    factor: float = 2.0
    step: Seconds = 0.1
    max: Seconds = 30.0

    def __post_init__(self) -> None:
        if self.failures is not None and not 0 <= self.failures < 1:
            raise InvalidInput(
                f"failures={self.failures!r} is a share: from 0 to less than 1, or None", field="failures"
            )
        if self.failures is None and self.handler is None and self.settle is None and self.lag is None:
            raise InvalidInput("nothing to watch: give failures=, handler=, settle= or lag=", field="failures")
        if not self.factor > 1:
            raise InvalidInput(f"factor={self.factor!r} must be more than 1, or the delay never grows", field="factor")
        for name in ("first", "step", "max"):
            if not to_span(getattr(self, name), name):
                raise InvalidInput(f"{name}={getattr(self, name)!r} must be more than 0 seconds", field=name)
        for name in ("handler", "settle", "lag"):
            if getattr(self, name) is not None:
                to_span(getattr(self, name), name)


class Throttle:
    """An AdaptiveDelay in one worker."""

    def __init__(self, policy: AdaptiveDelay) -> None:
        self._policy = policy
        self._delay_us = 0
        self._settled = 0
        self._failed = 0

    def __call__(self, load: Load) -> float:
        policy = self._policy
        if self._is_bad(load):
            grown = round(self._delay_us * policy.factor)
            self._delay_us = min(to_span(policy.max, "max"), max(to_span(policy.first, "first"), grown))
        else:
            self._delay_us = max(0, self._delay_us - to_span(policy.step, "step"))
        self._settled, self._failed = load.settled, load.failed
        return self._delay_us / SECOND

    def _is_bad(self, load: Load) -> bool:
        policy = self._policy
        return (
            self._fails_too_often(load)
            or _is_over(load.handler_seconds, policy.handler)
            or _is_over(load.settle_seconds, policy.settle)
            or _is_over(load.lag_seconds, policy.lag)
        )

    def _fails_too_often(self, load: Load) -> bool:
        """Nothing settled is no failure."""
        settled, failed = load.settled - self._settled, load.failed - self._failed
        return self._policy.failures is not None and settled > 0 and failed / settled > self._policy.failures


def _is_over(measured: float | None, mark: Seconds | None) -> bool:
    return measured is not None and mark is not None and measured > to_span(mark, "mark") / SECOND
