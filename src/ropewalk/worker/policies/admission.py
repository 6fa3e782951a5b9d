"""Admission decides how many jobs of each type a claim asks for, and which of the claimed jobs may start in this
worker.

A worker with a plain number as its concurrency, types without a policy and no `accept` needs no admission.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ropewalk.definitions.policies import Concurrency, Offer, Ordered, RateLimited, most_at_once
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.domain.user_calls import guarded
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.executor import BUFFER_SECONDS, Executor
from ropewalk.worker.policies.rate import RatePolicyState
from ropewalk.worker.settler import Settler

FIRST_SECONDS: Final = 1.0
"""Claims ignore a job for this long after it was declined for the first time."""
SECONDS_MAX: Final = 60.0
"""Claims ignore a declined job for this long at most."""
REMEMBERED_MAX: Final = 1000
"""A worker remembers this many declined jobs, because every claim has to ignore all of them."""


class Declined:
    """The jobs that this worker declined. Its claims ignore a job for one second, and twice as long each time.

    A declined job is given back without a delay and keeps its place, so that another worker gets it at once. A delay
    would keep it from every worker, and each worker that declines it would move it further away from the one that
    accepts it.
    """

    def __init__(self) -> None:
        self._until: dict[int, tuple[float, float]] = {}
        """The seq of each job, with the time until which claims ignore it and the length of this span."""

    def add(self, seq: int, now: float) -> bool:
        """Remembers a declined job. Returns False if there are too many to remember one more."""
        if seq not in self._until and len(self._until) >= REMEMBERED_MAX:
            # A job is forgotten when twice its span has passed; if it is declined again later, it counts as new.
            self._until = {each: known for each, known in self._until.items() if known[0] + known[1] > now}
            if len(self._until) >= REMEMBERED_MAX:
                return False
        _, before = self._until.get(seq, (0.0, FIRST_SECONDS / 2))
        span = min(SECONDS_MAX, 2 * before)
        self._until[seq] = (now + span, span)
        return True

    def ignored(self, now: float) -> frozenset[int]:
        """Returns the jobs that claims ignore now."""
        return frozenset(seq for seq, (until, _) in self._until.items() if until > now)


Accept = Callable[[Offer], bool]
"""The function of the user's that decides whether this worker runs a job."""


class Ask(NamedTuple):
    """What the next claim asks for."""

    limit: int
    """The claim brings this many jobs at most."""
    types: Mapping[str, Span]
    """The claim brings jobs of these types only, each with a lease of this length."""
    room: Mapping[str, int]
    """Of these types the claim brings this many jobs at most."""
    ignored: frozenset[int]
    """The claim ignores these jobs."""


class Admission:
    """The admission of one worker."""

    def __init__(
        self,
        worker_context: WorkerContext,
        buffer: Buffer,
        executor: Executor,
        settler: Settler,
        *,
        concurrency: Concurrency,
        accept: Accept | None,
    ) -> None:
        self._worker_context = worker_context
        self._buffer = buffer
        self._executor = executor
        self._settler = settler
        self._accept = accept
        self._declined = Declined()
        self._types = worker_context.leases()
        own = {
            each.name: each.options.concurrency
            for each in worker_context.registry
            if each.options.concurrency is not None
        }
        self._running_max = {name: most for name, each in own.items() if (most := most_at_once(each)) is not None}
        """How many jobs of a type may run at once in this worker, for each type with such a policy."""
        self._ordered = {name: each for name, each in own.items() if isinstance(each, Ordered)}
        """The policy of each type whose jobs start in an order of its own."""
        self._batched = {
            each.name: each.options.batch.size
            for each in worker_context.registry
            if each.options.batch is not None and each.options.batch.max_batches is not None
        }
        """The size of a batch of each type with `max_batches`."""
        executor.batches.on_declined = self.ignore
        self._rate_of_worker = RatePolicyState(concurrency) if isinstance(concurrency, RateLimited) else None
        self._rates_of_types = {
            name: RatePolicyState(each) for name, each in own.items() if isinstance(each, RateLimited)
        }

    def __bool__(self) -> bool:
        """Whether any policy of this worker or of its types limits what it may start."""
        return (
            self._accept is not None
            or self._rate_of_worker is not None
            or bool(self._running_max or self._rates_of_types or self._batched)
        )

    def concerns(self, job_type: str) -> bool:
        """Whether a policy may keep a job of this type from starting in this worker."""
        everything = self._accept is not None or self._rate_of_worker is not None
        return everything or any(job_type in own for own in (self._running_max, self._rates_of_types, self._batched))

    def ask(self, wanted: int) -> Ask:
        """Returns what a claim for `wanted` jobs may ask for under the policies."""
        now, here = self._now(), {*self._buffer, *self._buffer.running}
        for rate in self._all_rates():
            rate.keep(here)
        room = self._places(here)
        for name, rate in self._rates_of_types.items():
            if (starts := rate.room(now)) is not None:
                room[name] = min(starts, room.get(name, starts))
        limit = wanted
        if self._rate_of_worker is not None and (starts := self._rate_of_worker.room(now)) is not None:
            limit = min(limit, max(0, starts))
        types = {name: span for name, span in self._types.items() if room.get(name, 1) > 0}
        if types.keys() <= room.keys():
            limit = min(limit, sum(room[name] for name in types))
        ignored = (
            self._declined.ignored(self._worker_context.runtime.monotonic()) | self._worker_context.misfits.ignored()
        )
        return Ask(limit, types if limit else {}, {name: room[name] for name in types if name in room}, ignored)

    def _places(self, here: Iterable[Attempt]) -> dict[str, int]:
        """Returns how many more jobs of each type may be claimed.

        Usually these are no more than may run at once, so that no job waits here for another one of its type. A policy
        with an order needs more jobs to choose from; but these are claimed only when one of them can start at once,
        because a job that was given back would otherwise be claimed again for nothing.
        """
        of_type = Counter(attempt.job.type for attempt in here)
        places = {name: most - of_type[name] for name, most in self._running_max.items()}
        if self._ordered:
            running = Counter(attempt.job.type for attempt in self._buffer.running)
            for name, policy in self._ordered.items():
                at_hand = max(policy.ahead or 0, self._executor.work_in(BUFFER_SECONDS, policy.max))
                places[name] = places[name] + at_hand if running[name] < policy.max else 0
        for name, size in self._batched.items():
            fitting = self._executor.batches.room(name, size, of_type[name])
            places[name] = min(fitting, places.get(name, fitting))
        return places

    def ignore(self, attempts: Iterable[Attempt]) -> None:
        """Has claims ignore these jobs for a while, so that other workers get them: they could not start here."""
        now = self._worker_context.runtime.monotonic()
        for attempt in attempts:
            self._declined.add(attempt.job.seq, now)

    def admit(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Returns the jobs that may start as soon as a slot is free, and gives the others back."""
        return [attempt for attempt in attempts if self._is_accepted(attempt) and self._has_room(attempt)]

    def began(self, attempt: Attempt) -> None:
        """Counts the start of a job for its rates."""
        now = self._now()
        for rate in self._rates_of(attempt):
            rate.began(attempt, now)

    def room_in_seconds(self) -> float | None:
        """Returns after how many seconds the first of the exhausted rates has room again; None if no rate is
        exhausted."""
        now = self._now()
        times = [at for rate in self._all_rates() if (at := rate.room_at(now)) is not None]
        return (min(times) - now) / SECOND if times else None

    def _is_accepted(self, attempt: Attempt) -> bool:
        if self._accept is None:
            return True
        try:
            accepted = guarded(_is_true, self._accept, Offer(attempt.job, attempt.job_type))
        except Exception as error:
            self._worker_context.events.report(error, "accept")
            return True
        if not accepted:
            remembered = self._declined.add(attempt.job.seq, self._worker_context.runtime.monotonic())
            self._settler.release([attempt], after_us=0 if remembered else SECOND)
        return accepted

    def _has_room(self, attempt: Attempt) -> bool:
        now, of_it = self._now(), self._rates_of(attempt)
        keys = [self._key(rate, attempt) for rate in of_it]
        full = [(rate, key) for rate, key in zip(of_it, keys, strict=True) if not rate.has_room(key, now)]
        if full:
            self._settler.release([attempt], after_us=max(rate.away_us(key, now) for rate, key in full))
            return False
        for rate, key in zip(of_it, keys, strict=True):
            rate.let_in(attempt, key)
        return True

    def _key(self, rate: RatePolicyState, attempt: Attempt) -> str | None:
        if rate.policy.per is None:
            return None
        try:
            return guarded(_text_of, rate.policy.per, Offer(attempt.job, attempt.job_type))
        except Exception as error:
            self._worker_context.events.report(error, "per")
            return None

    def _rates_of(self, attempt: Attempt) -> list[RatePolicyState]:
        both = (self._rate_of_worker, self._rates_of_types.get(attempt.job.type))
        return [rate for rate in both if rate is not None]

    def _all_rates(self) -> list[RatePolicyState]:
        return [*self._rates_of_types.values(), *(() if self._rate_of_worker is None else (self._rate_of_worker,))]

    def _now(self) -> Instant:
        return round(self._worker_context.runtime.monotonic() * SECOND)


def _is_true(accept: Accept, offer: Offer) -> bool:
    """Calls `accept` and returns its answer as a bool, because a function of the user's may return any object."""
    return bool(accept(offer))


def _text_of(per: Callable[[Offer], str | None], offer: Offer) -> str | None:
    key = per(offer)
    return None if key is None else str(key)
