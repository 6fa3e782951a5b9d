"""What the parts of one worker share: composed once in worker.py, then passed on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ropewalk.definitions.context.attempt_port import Isolation
from ropewalk.definitions.middleware import Middleware
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.definitions.registry import Registry
from ropewalk.definitions.results.classify import classify
from ropewalk.definitions.unregistered import UnregisteredTypes
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import StoreUnavailable
from ropewalk.observe.events import EventHub
from ropewalk.ports.codec import Codec
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Durability, Store
from ropewalk.ports.store.workflows import WorkflowStore
from ropewalk.ports.tracing import Tracing
from ropewalk.runtime.system import ClockGuard
from ropewalk.worker.contact import StoreContact
from ropewalk.worker.misfits import Misfits

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType
    from ropewalk.domain.jobs.outcome import Outcome
    from ropewalk.domain.jobs.record import JobRecord
    from ropewalk.domain.jobs.transition import Settlement
    from ropewalk.ports.store.leases import Settlements
    from ropewalk.worker.attempt import Attempt

InThread: TypeAlias = "Callable[[Sequence[Attempt], Callable[[], object]], Coroutine[Any, Any, object]]"


@dataclass(slots=True, kw_only=True)
class WorkerContext:
    owner: str
    """this worker instance: random, never a host name"""
    store: Store
    runtime: Runtime
    registry: Registry
    unregistered: UnregisteredTypes
    """What the app does about jobs of types that it does not know, whichever of its types this worker serves."""
    events: EventHub
    codec: Codec
    bounds: Bounds
    defaults: AppDefaults
    lease_us: Span
    isolation: Isolation
    logs: Logs
    tracing: Tracing | None
    middlewares: tuple[Middleware, ...] = ()
    """those of the app"""
    resources: tuple[object, ...] = ()
    """what the lifespan yielded"""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    held: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    """(seq, fence) → every lease of this worker that is not settled yet, buffered ones included"""
    workflows: WorkflowStore | None = field(init=False)
    """The store with the verbs of workflows; None where it has none."""
    guard: ClockGuard = field(init=False)
    contact: StoreContact = field(init=False)
    misfits: Misfits = field(init=False)
    """Jobs whose arguments the code of this worker cannot read."""
    host: str = field(default_factory=socket.gethostname)
    linger_seconds: float = 0.004
    """How long the outcome of an attempt may wait for others that are settled together with it."""
    suspects: dict[tuple[int, int], JobRecord] = field(default_factory=dict)
    """The held jobs that were running when a worker died, by (seq, fence)."""
    refused: int = 0
    """settlements the store answered as stale"""
    in_thread: InThread = field(init=False)
    """run part of a handler in a thread; the executor, which knows the slots, puts it here"""
    settled_elsewhere: Callable[[list[tuple[Attempt, Settlement]], Settlements], object] = lambda _, __: None
    """tell of jobs that a handler's own transaction completed"""

    def __post_init__(self) -> None:
        self.workflows = WORKFLOWS.if_declared(self.store)
        self.guard = ClockGuard(self.runtime)
        in_process = self.store.durability is Durability.D0
        self.misfits = Misfits(self)
        self.contact = StoreContact(self.runtime, in_process=in_process, on_back=self.events.store_is_back)

    def take_back_until(self) -> Instant:
        """The last instant, by the store's clock, at which a call that is sent now may take back leases; 0 is never."""
        return self.contact.take_back_until() if self.guard.calm else 0

    def loop_failed(self, error: BaseException, name: str) -> None:
        """A background loop failed, and is about to be started again."""
        if isinstance(error, StoreUnavailable):
            self.contact.failed()
        self.events.loop_failed(error, name)

    def leases(self) -> Mapping[str, Span]:
        """Registered type → its lease."""
        return {each.name: each.options.lease_us or self.lease_us for each in self.registry}

    def verdict(self, error: BaseException, job_type: JobType[..., Any, Any], attempt: int) -> Outcome:
        """What an exception means that the attempt of this number raised here."""
        return classify(
            error,
            job_type,
            self.events.report,
            attempt=attempt,
            app_decide=self.defaults.decide,
            secrets=job_type.hidden_names(self.logs.secret_keys),
        )

    def hold(self, attempt: Attempt) -> None:
        self.held[attempt.key] = attempt
        if attempt.job.crashes:
            self.suspects[attempt.key] = attempt.job

    def drop(self, attempt: Attempt) -> None:
        if self.held.pop(attempt.key, None) is not None and attempt.job.crashes:
            self.suspects.pop(attempt.key, None)
