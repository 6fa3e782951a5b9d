"""The app state contains what the clients and workers of one app share: the store, the registry, and one session for
each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from msgspec import structs

from ropewalk.client.awaited_groups import AwaitedGroups
from ropewalk.client.enqueuer import Enqueuer
from ropewalk.client.schedules.editor import ScheduleEditor
from ropewalk.client.schedules.fires import Fires
from ropewalk.client.schedules.functions import AnyFunction, ScheduleFunctions
from ropewalk.client.schedules.planner import Planner
from ropewalk.client.unshared_store import warn_unshared
from ropewalk.client.waiter import (
    ChainCompletion,
    ClosedGroupRecord,
    CompletionCheck,
    GroupCompletion,
    JobCompletion,
    WaitBound,
    Waiter,
)
from ropewalk.definitions.job import NO_OPTIONS, Job
from ropewalk.definitions.job_types.placeholders import job_from_shown
from ropewalk.definitions.options import AppDefaults, EnqueueOptions
from ropewalk.definitions.registry import Registry, UnregisteredTypes
from ropewalk.definitions.schedule import DeclaredSchedule
from ropewalk.definitions.submission import to_new_job
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.errors import DefinitionError, InvalidInput, RopewalkError, WeakDurability
from ropewalk.observe.events import EventHub
from ropewalk.observe.tracing import Sending
from ropewalk.ports.codec import Codec
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, LIMITS, SCHEDULES, WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Accepted, SkipQueue, Submission
from ropewalk.ports.tracing import Tracing

T = TypeVar("T")


class LocalWorker(Protocol):
    """A worker of this process, which may run a job of this process's client without a claim."""

    def skip_ticket(self, new: NewJob) -> SkipQueue | None:
        """Returns the lease for a job that skips the queue, if a slot is free for it; None otherwise."""
        ...

    def adopt(self, job: JobRecord) -> None:
        """Runs a job that was inserted with a lease of this worker."""
        ...


class Session:
    """The parts of a client that belong to one event loop: the enqueuer and the waiters."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self.enqueuer = Enqueuer(app_state.store, app_state.runtime, app_state.events)
        self.jobs = self._waiter(JobCompletion(app_state.store))

    @cached_property
    def groups(self) -> Waiter[ClosedGroupRecord]:
        """The waiter for groups. Raises Unsupported if the store has no workflows."""
        return self._waiter(GroupCompletion(self._app_state.store, self._app_state.awaited))

    @cached_property
    def chains(self) -> Waiter[JobRecord]:
        """The waiter for chains. Raises Unsupported if the store has no workflows."""
        return self._waiter(ChainCompletion(self._app_state.store))

    def _waiter(self, check: CompletionCheck[T]) -> Waiter[T]:
        return Waiter(check, self._app_state.store.notifier, self._app_state.runtime, self._app_state.wait_bound)


class AppState:
    """The state of one app. It opens the store on first use, and makes the records of jobs that are submitted."""

    def __init__(
        self,
        *,
        store: Store,
        runtime: Runtime,
        registry: Registry,
        events: EventHub,
        codec: Codec,
        bounds: Bounds,
        defaults: AppDefaults,
        tracing: Tracing | None = None,
        reports_orphans: bool = False,
        schedules: Iterable[DeclaredSchedule] = (),
        functions: Iterable[AnyFunction] = (),
        secret_keys: Iterable[str] = (),
        strict: bool | None = None,
        store_chosen: bool = True,
    ) -> None:
        self.store = store
        self._check_supported = supported_jobs(store)
        """This raises Unsupported for a job that the store cannot take; None if it can take every job."""
        self.runtime = runtime
        self.registry = registry
        self.unregistered = UnregisteredTypes(registry, strict=strict)
        self.unregistered.check_registered()
        self.events = events
        diagnosis = DIAGNOSIS.if_declared(store)
        if diagnosis is not None:
            diagnosis.watch_durability(lambda message: events.report(WeakDurability(message), "durability"))
        self.codec = codec
        self.bounds = bounds
        self.defaults = defaults
        self.tracing = tracing
        self.reports_orphans = reports_orphans
        """Whether this app has a hook for orphan groups."""
        self.secret_keys = frozenset(secret_keys)
        """The names that the app hides, in addition to those that are always hidden."""
        self.awaited = AwaitedGroups(runtime)
        self.wait_bound: WaitBound | None = None
        """A rehearsal bounds every wait for a job, a group or a chain by this, because its clock may stand still."""
        self.declared: list[DeclaredSchedule] = []
        self.functions = ScheduleFunctions(functions)
        self.fires = Fires(store, runtime, events, self.functions, self._job_of_schedule, tracing=tracing)
        planner = Planner(self.functions, self._job_of_schedule, bounds, self.named_job)
        self.schedule_editor = ScheduleEditor(store, events, self.functions, self.fires, planner)
        for each in schedules:
            self.declare(each)
        self._warn_unshared = not store_chosen
        """Whether to warn at the first use that the jobs are only in memory, because no store was chosen."""
        self._opened = False
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Session] = WeakKeyDictionary()
        self._workers: dict[LocalWorker, asyncio.AbstractEventLoop] = {}

    async def session(self) -> Session:
        """Returns the session of the running loop, and opens the store on first use."""
        if not self._opened:
            await self.open()
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = Session(self)
        return session

    @property
    def is_open(self) -> bool:
        """Whether the store has been opened and not closed since."""
        return self._opened

    def begin_use(self) -> None:
        """Warns once about a store that nobody chose. This is called while the caller's code is still on the stack, so
        that the warning names its line."""
        if self._warn_unshared:
            warn_unshared()
            self._warn_unshared = False

    async def open(self) -> None:
        """Opens the store if it is not open."""
        self.begin_use()
        if not self._opened:
            await self.store.open()
            self._opened = True

    async def submit(self, submissions: Sequence[Submission]) -> list[list[Accepted]]:
        """Submits one after another, in one span if the app traces. Raises the error of the first submission that is
        refused."""
        session = await self.session()
        with self.traced(submissions) as traced:
            return [await session.enqueuer.submit(each) for each in traced]

    async def submit_each(self, submissions: Sequence[Submission]) -> list[list[Accepted] | RopewalkError]:
        """Submits in this order, with shared commits. The answer to a submission that is refused is its error; the
        others are not affected."""
        session = await self.session()
        with self.traced(submissions) as traced:
            answers = await asyncio.gather(*(session.enqueuer.submit(each) for each in traced), return_exceptions=True)
        return [_answer(each) for each in answers]

    def traced(self, submissions: Sequence[Submission]) -> AbstractContextManager[Sequence[Submission]]:
        """Returns a context manager that yields the submissions to send, inside a span if the app traces."""
        if self.tracing is None:
            return nullcontext(submissions)
        return Sending(submissions, self.tracing, self.events)

    async def close(self) -> None:
        """Closes the store. The next use opens it again."""
        self._opened = False
        await self.store.close()

    def new_job(self, job: Job[Any, Any], options: EnqueueOptions, tenant: str) -> NewJob:
        """Returns the record that is submitted for a job, with all options resolved and checked."""
        new = to_new_job(job, call=options, defaults=self.defaults, bounds=self.bounds, tenant=tenant)
        self.unregistered.check(new)
        if self._check_supported is not None:
            self._check_supported(new)
        return structs.replace(new, report_orphan=True) if self.reports_orphans else new

    def named_job(self, job_type: str, arguments: object, stored: bytes | None = None) -> Job[Any, Any]:
        """Makes a job of a registered type. Raises UnknownJobType and InvalidInput.

        `stored` is the input of another job, from which arguments are taken that `arguments` does not contain.
        """
        found = self.registry.get(job_type)
        if stored is not None:
            arguments = found.resolve().arguments.merged_with_stored(stored, arguments)
        return job_from_shown(found, arguments, self.secret_keys)

    def declare(self, declared: DeclaredSchedule) -> None:
        """Adds a schedule that code declares. Workers that start from now on store it."""
        if any((each.tenant, each.name) == (declared.tenant, declared.name) for each in self.declared):
            raise DefinitionError(f"two schedules are named {declared.name!r}: give one of them another name")
        SCHEDULES.of(self.store)
        if (job := declared.options.get("job")) is not None:
            self.unregistered.check_scheduled(declared.name, job)
        self.functions.add_from(declared)
        self.declared.append(declared)

    def _job_of_schedule(self, job: Job[Any, Any], tenant: str) -> NewJob:
        new = self.new_job(job, NO_OPTIONS, tenant)
        if new.tenant != tenant:
            raise InvalidInput(
                f"the job of a schedule has tenant={new.tenant!r}, but the schedule {tenant!r}: "
                "set the tenant on the schedule",
                field="tenant",
            )
        return new

    def serves(self, worker: LocalWorker) -> None:
        """Records that a worker of this process has started on the running loop."""
        self._workers[worker] = asyncio.get_running_loop()

    def stops_serving(self, worker: LocalWorker) -> None:
        """Records that a worker of this process is stopping."""
        self._workers.pop(worker, None)

    def skip_slot(self, new: NewJob) -> tuple[LocalWorker, SkipQueue] | None:
        """Returns a worker on the running loop with a free slot for a job that skips the queue, and the lease for the
        job; None if there is none."""
        loop = asyncio.get_running_loop()
        for worker, its_loop in self._workers.items():
            if its_loop is loop:
                slot = worker.skip_ticket(new)
                if slot is not None:
                    return worker, slot
        return None

    def runs_worker_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a worker of this app runs on this loop."""
        return loop in self._workers.values()


def _answer(answer: list[Accepted] | BaseException) -> list[Accepted] | RopewalkError:
    if isinstance(answer, BaseException) and not isinstance(answer, RopewalkError):
        raise answer
    return answer


def supported_jobs(store: Store) -> Callable[[NewJob], None] | None:
    """Returns a function that raises Unsupported for a job that needs a capability which the store does not declare;
    None if the store can take every job."""
    if WORKFLOWS in store.capabilities and LIMITS in store.capabilities:
        return None

    def check(new: NewJob) -> None:
        if new.gate is not None or new.on_failure is not None:
            WORKFLOWS.of(store)
        if new.limit_key is not None:
            LIMITS.of(store)

    return check
