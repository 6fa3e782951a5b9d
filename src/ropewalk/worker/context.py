"""The worker context contains what the parts of one worker share. The app composes it once at each start of a
worker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ropewalk.definitions.context.attempt_port import Isolation
from ropewalk.definitions.middleware import Middleware
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.definitions.registry import Registry, UnregisteredTypes
from ropewalk.definitions.results.classify import classify
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
    """The settings, the shared services and the leases of one started worker."""

    owner: str
    """This is the id of the worker, under which the store records its leases. It is random and never a host name."""
    store: Store
    runtime: Runtime
    registry: Registry
    unregistered: UnregisteredTypes
    """This says what the app does about jobs of types that it does not know. A type that the app knows and this worker
    does not serve is not one of them."""
    events: EventHub
    codec: Codec
    bounds: Bounds
    defaults: AppDefaults
    lease_us: Span
    isolation: Isolation
    logs: Logs
    tracing: Tracing | None
    middlewares: tuple[Middleware, ...] = ()
    """These are the middlewares of the app; those of a job type are in its options."""
    resources: tuple[object, ...] = ()
    """These are the objects that the lifespan of the app yielded."""
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    """These are the attempts whose leases this worker holds, by (seq, fence): they run, wait in the buffer, or wait to
    be settled."""
    workflows: WorkflowStore | None = field(init=False)
    """This is the store with its verbs for workflows; None if it has none."""
    guard: ClockGuard = field(init=False)
    """This notices that the wall clock jumped."""
    contact: StoreContact = field(init=False)
    """This knows whether the worker has been in contact with the store for long enough to take back leases."""
    misfits: Misfits = field(init=False)
    """These are the jobs whose arguments the code of this worker cannot read."""
    host: str = field(default_factory=socket.gethostname)
    linger_seconds: float = 0.004
    """The outcome of an attempt waits at most this long for others, so that they are settled together."""
    suspects: dict[tuple[int, int], JobRecord] = field(default_factory=dict)
    """These are the held jobs that were running when a worker died, by (seq, fence)."""
    refused: int = 0
    """The store refused this many settlements because the lease was lost."""
    in_thread: InThread = field(init=False)
    """This runs a part of a handler in a thread. The executor puts it here, because it knows the slots."""
    settled_elsewhere: Callable[[list[tuple[Attempt, Settlement]], Settlements], object] = lambda _, __: None
    """This is called with jobs that the handler's own transaction completed, so that events are published for them."""

    def __post_init__(self) -> None:
        self.workflows = WORKFLOWS.if_declared(self.store)
        self.guard = ClockGuard(self.runtime)
        in_process = self.store.durability is Durability.D0
        self.misfits = Misfits(self)
        self.contact = StoreContact(self.runtime, in_process=in_process, on_back=self.events.store_is_back)

    def take_back_until(self) -> Instant:
        """Returns the last instant, by the store's clock, at which a call that is sent now may take back leases. 0
        means that it must not take back any."""
        return self.contact.take_back_until() if self.guard.calm else 0

    def loop_failed(self, error: BaseException, name: str) -> None:
        """Reports that a background loop of the worker failed; its supervisor is about to start it again."""
        if isinstance(error, StoreUnavailable):
            self.contact.failed()
        self.events.loop_failed(error, name)

    def leases(self) -> Mapping[str, Span]:
        """Returns the length of the lease of every registered type."""
        return {each.name: each.options.lease_us or self.lease_us for each in self.registry}

    def classify(self, error: BaseException, job_type: JobType[..., Any, Any], attempt: int) -> Outcome:
        """Returns the outcome of an attempt of this number whose handler raised this exception."""
        return classify(
            error,
            job_type,
            self.events.report,
            attempt=attempt,
            app_decide=self.defaults.decide,
            secrets=job_type.hidden_names(self.logs.secret_keys),
        )

    def hold(self, attempt: Attempt) -> None:
        """Records that this worker holds the lease of an attempt."""
        self.attempts[attempt.key] = attempt
        if attempt.job.crashes:
            self.suspects[attempt.key] = attempt.job

    def drop(self, attempt: Attempt) -> None:
        """Forgets a lease that this worker does not hold any more."""
        if self.attempts.pop(attempt.key, None) is not None and attempt.job.crashes:
            self.suspects.pop(attempt.key, None)
