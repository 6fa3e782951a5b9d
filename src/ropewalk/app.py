"""The app is a client that knows job types and makes workers. Importing this module and making an app do no I/O."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack, cast, overload

from msgspec import structs

from ropewalk.client.app_state import AppState
from ropewalk.client.portal import Portal
from ropewalk.client.schedules.functions import AnyFunction
from ropewalk.client.store_client import StoreClient
from ropewalk.connect import check_store, connect, is_chosen, resolved
from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.job_types.job_type import JobType, type_name
from ropewalk.definitions.middleware import Middleware, check_required, middlewares_of
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.definitions.policies import Concurrency
from ropewalk.definitions.registry import Item, Registry
from ropewalk.definitions.schedule import DeclaredSchedule, ScheduleOptions, schedule
from ropewalk.domain import checks
from ropewalk.domain.bounds import DEFAULT_BOUNDS, Bounds
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.retention import Retention
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import SECOND, Seconds, Span, to_span
from ropewalk.errors import DefinitionError, InvalidInput
from ropewalk.observe.events import ErrorHook, EventHook, EventHub
from ropewalk.observe.metrics.meter import Meter
from ropewalk.observe.metrics.metrics import Metrics
from ropewalk.observe.metrics.values import MetricValues
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import LOGS, MIGRATIONS, STATISTICS
from ropewalk.ports.store.core import Durability, Store
from ropewalk.ports.store.findings import Finding
from ropewalk.ports.store.migrations import MigrationStore
from ropewalk.ports.store.urls import masked
from ropewalk.ports.tracing import Tracing
from ropewalk.runtime.system import SystemRuntime
from ropewalk.sync import SyncApp
from ropewalk.worker.app_settings import Settings
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.options import WorkerOptions
from ropewalk.worker.parts import DEFAULT_CONCURRENCY, DEFAULT_GRACE_SECONDS, DEFAULT_LEASE, WorkerConfig
from ropewalk.worker.policies.admission import Accept
from ropewalk.worker.policies.backlog import BacklogAlarm
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Hook
from ropewalk.worker.services.orphan_groups import OrphanHook
from ropewalk.worker.services.redriver import Redrive
from ropewalk.worker.worker import Worker

if TYPE_CHECKING:
    from ropewalk.fleet.worker_processes import WorkerProcesses

Lifespan: TypeAlias = Callable[["App"], AbstractAsyncContextManager[object]]


class App(StoreClient):
    """`App("sqlite:///jobs.db", jobs=[add, fetch])`. Connects on first use, or with `async with app:`.

    url: memory://, sqlite:///file, postgresql://user@host/database, or a scheme of an installed package. None means
        $ROPEWALK_URL, or else memory://; a program that is not a test gets a warning then (UnsharedStore).
    store: a store object instead of a URL. The app opens and closes it.
    jobs: job types, registries and modules. A parameter that takes several values also takes a single one.
    lifespan: an async context manager that each worker enters once. Handlers get the objects that it yields (one, or a
        tuple of them) by ctx.resource(Class).
    middlewares: functions `async def middleware(ctx, call_next)` around every handler; the first one is outermost.
    on_event: a hook that is called with every event.
    on_error: a hook that is called with every error that is reported and stops nothing, and with its phase.
    on_orphan_group: a hook that a worker calls at least once for each group that closed while nobody waited for it,
        whichever client enqueued it.
    logs: which lines of ctx.log are kept with their job, and which fields are secret.
    metrics: whether this process counts what happens; `app.metrics` shows the numbers.
    tracing: a tracing system for spans, such as ropewalk.integrations.otel.OpenTelemetry().
    schedules: the schedules that code declares with `schedule(...)`. They are stored when a worker starts.
    functions: the functions that schedules made at run time may name (next=, run=).
    strict: whether jobs are refused whose type is not among `jobs`. None accepts them with one warning for each type,
        and without a warning if the app has no types at all, because it is only a client then.
    migrate: whether opening the store brings its schema up to date. False refuses a store with another schema.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        store: Store | None = None,
        jobs: Item | Iterable[Item] = (),
        defaults: AppDefaults | None = None,
        bounds: Bounds = DEFAULT_BOUNDS,
        retention: Retention | None = None,
        lifespan: Lifespan | None = None,
        middlewares: Middleware | Iterable[Middleware] = (),
        on_event: EventHook | None = None,
        on_error: ErrorHook | None = None,
        on_orphan_group: OrphanHook | None = None,
        logs: Logs | None = None,
        metrics: bool = True,
        tracing: Tracing | None = None,
        schedules: DeclaredSchedule | Iterable[DeclaredSchedule] = (),
        functions: AnyFunction | Iterable[AnyFunction] = (),
        strict: bool | None = None,
        runtime: Runtime | None = None,
        allow_weaker_durability: bool = False,
        migrate: bool = True,
    ) -> None:
        try:
            self.settings = Settings(
                defaults=AppDefaults() if defaults is None else defaults,
                bounds=bounds,
                retention=Retention() if retention is None else retention,
                lifespan=lifespan,
                middlewares=middlewares_of(middlewares, "middlewares"),
                on_event=on_event,
                on_error=on_error,
                on_orphan_group=on_orphan_group,
                logs=Logs() if logs is None else logs,
                metrics=metrics,
                strict=strict,
                tracing=tracing,
                functions=checks.several(functions, "functions", checks.function),
            )
            items = checks.several(jobs, "jobs", _item)
            declared = checks.several(schedules, "schedules", _declared)
            checks.flag(allow_weaker_durability, "allow_weaker_durability")
            checks.flag(migrate, "migrate")
            if runtime is not None:
                checks.with_methods(runtime, "runtime", ("now", "spawn"), "a Runtime, such as FakeRuntime()")
            if store is not None:
                check_store(store, url, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
        except InvalidInput as error:
            raise DefinitionError(f"App: {error}") from error
        store_chosen = is_chosen(url) or store is not None or runtime is not None  # Only tests pass a runtime.
        runtime = SystemRuntime() if runtime is None else runtime
        self._url: str | None = None
        if store is None:
            self._url = resolved(url)
            store = connect(self._url, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
        registry = Registry(*items)
        metric_values = MetricValues()
        meter = Meter(metric_values) if metrics else None
        secret_keys = self.settings.logs.secret_keys
        events = EventHub(runtime, on_event=on_event, on_error=on_error, meter=meter, secret_keys=secret_keys)
        for job_type in registry:
            if job_type.options.on_event is not None:
                events.hook_type(job_type.name, job_type.options.on_event)
        app_state = AppState(
            store=store,
            runtime=runtime,
            registry=registry,
            events=events,
            codec=DEFAULT_CODEC,
            bounds=bounds,
            defaults=self.settings.defaults,
            tracing=tracing,
            reports_orphans=on_orphan_group is not None,
            schedules=declared,
            functions=self.settings.functions,
            secret_keys=secret_keys,
            strict=strict,
            store_chosen=store_chosen,
        )
        super().__init__(app_state, DEFAULT_TENANT)
        self.metrics = Metrics(app_state, metric_values, meter)
        self._portal = Portal(app_state)
        self.sync = SyncApp(self, self._portal, self.metrics)

    @property
    def registry(self) -> Registry:
        """The job types that this app knows."""
        return self._app_state.registry

    @property
    def declared(self) -> tuple[DeclaredSchedule, ...]:
        """The schedules that this app's code declares."""
        return tuple(self._app_state.declared)

    @property
    def url(self) -> str:
        """The URL of the store, with its password hidden; for an app with a store object, the name of that store and a
        colon."""
        return f"{self._app_state.store.name}:" if self._url is None else masked(self._url)

    @property
    def migrating(self) -> MigrationStore | None:
        """The store with its methods for migrations; None if it has no schema."""
        return MIGRATIONS.if_declared(self._app_state.store)

    @property
    def durability(self) -> Durability:
        """The durability of the store, which says what an acknowledged job survives."""
        return self._app_state.store.durability

    async def __aenter__(self) -> Self:
        try:
            await self._app_state.open()
        except BaseException:
            await self.close()  # The block is not entered, so __aexit__ will not close the store.
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def examine(self, *, deep: bool = False) -> list[Finding]:
        """Return the findings of `ropewalk doctor` about the store, its workers and the jobs of all tenants. This
        changes nothing.

        deep: also examine what takes long, such as every page of a SQLite file.
        """
        from ropewalk.observe.doctor.doctor import examine  # Most clients never examine the store.

        checks.flag(deep, "deep")
        app_state, url, make_twin = self._app_state, self._url, None
        if url is not None:
            make_twin = partial(connect, url, app_state.runtime, allow_weaker_durability=True, migrate=False)
        return await examine(app_state.store, make_twin, app_state.runtime, deep=deep)

    async def close(self) -> None:
        """Close the store. Using the app again opens it again."""
        self._portal.stop_listening()
        await self._app_state.close()

    def schedule(
        self, name: str, *, tenant: str = DEFAULT_TENANT, reset: bool = False, **options: Unpack[ScheduleOptions]
    ) -> None:
        """Declare a schedule, as `App(schedules=[schedule(...)])` does. Workers that start later store it."""
        self._app_state.declare(schedule(name, tenant=tenant, reset=reset, **options))

    @overload
    def worker(self, *, processes: None = None, **options: Unpack[WorkerOptions]) -> Worker: ...

    @overload
    def worker(self, *, processes: int, **options: Unpack[WorkerOptions]) -> WorkerProcesses: ...

    def worker(
        self,
        *,
        queues: Iterable[str] | None = None,
        types: JobType[..., Any, Any] | str | Iterable[JobType[..., Any, Any] | str] | None = None,
        tenants: Iterable[str] | None = None,
        concurrency: Concurrency = DEFAULT_CONCURRENCY,
        lease: Seconds | None = None,
        grace: Seconds = DEFAULT_GRACE_SECONDS,
        poll: Seconds = 1.0,
        accept: Accept | None = None,
        backpressure: Hook | AdaptiveDelay | None = None,
        backlog_alarm: BacklogAlarm | None = None,
        scheduler: bool = True,
        redrive: Redrive | None = None,
        processes: int | None = None,
    ) -> Worker | WorkerProcesses:
        """Make a worker: `async with app.worker():`, or `await app.worker().run()`.

        queues, tenants, types: which jobs the worker serves; None means all of them, or all registered types.
        concurrency: how many jobs run at once, or a policy of ropewalk.policies.
        lease: the length of a lease; None means the app's default, which is 30 s unless it says otherwise.
        grace: the seconds that running jobs get to finish when the worker stops.
        poll: the seconds between claims while no job is ready and no hint arrives.
        accept: a function that gets an offer of a job and may decline the job.
        backpressure: a function that gets the load and returns how many seconds to wait before the next poll.
        backlog_alarm: sends an event when jobs wait too long.
        scheduler: whether the worker also fires schedules that are due.
        redrive: which dead-lettered jobs the worker runs again while it is idle.
        processes: the number of processes of their own in which the worker runs, each with this concurrency; those that
            die are replaced. None runs it in this process. Each process imports the module that has the app, or these
            workers, at its top level; `memory://` is refused.
        """
        registry = self._served(types)
        check_required(registry, self.settings.middlewares)
        checks.instance_or_none(redrive, "redrive", Redrive, 'Redrive(types=["charge"])')
        for name in () if redrive is None else redrive.names():
            registry.get(name)  # This raises if the app does not know the type.
        if redrive is not None and redrive.tenants is None and tenants is None:
            STATISTICS.of(self._app_state.store)  # They say which tenants have dead-lettered jobs.
        config = WorkerConfig(
            queues=checks.some_or_none(queues, "queues", checks.text),
            tenants=checks.some_or_none(tenants, "tenants", checks.text),
            concurrency=concurrency,
            accept=accept,
            backpressure=backpressure,
            backlog_alarm=backlog_alarm,
            lease_us=self._lease(lease),
            grace_seconds=to_span(grace, "grace") / SECOND,
            poll_seconds=to_span(poll, "poll") / SECOND,
            scheduler=scheduler,
            redrive=redrive,
        )
        worker = Worker(
            self._app_state,
            lambda: self._make_worker_context(registry, config),
            config,
            client=self,
            served=registry,
            retention=self.settings.retention,
            lifespan=None if self.settings.lifespan is None else self._resources,
            on_orphan_group=self.settings.on_orphan_group,
        )
        if processes is None:
            return worker
        from ropewalk.fleet.worker_processes import WorkerProcesses  # Most workers run in one process.

        return WorkerProcesses(
            worker,
            processes,
            config=config,
            url=self._url and self.url,
            durability=self.durability,
            runtime=self._app_state.runtime,
        )

    @asynccontextmanager
    async def running(
        self, *, concurrency: Concurrency = DEFAULT_CONCURRENCY, grace: Seconds = DEFAULT_GRACE_SECONDS
    ) -> AsyncGenerator[Worker]:
        """Run the client and a worker in this process, for scripts, tests and small services."""
        async with self, self.worker(concurrency=concurrency, grace=grace) as worker:
            yield worker

    def _served(self, types: JobType[..., Any, Any] | str | Iterable[JobType[..., Any, Any] | str] | None) -> Registry:
        names = checks.some_or_none(types, "types", type_name)
        served = self._app_state.registry
        if names is not None:
            served = Registry(*(served.get(name) for name in names))
        if not served.names():
            raise DefinitionError("this app knows no job types: pass them with App(jobs=[...])")
        return served

    def _lease(self, lease: Seconds | None) -> Span:
        if lease is not None:
            return to_span(lease, "lease")
        return self.settings.defaults.lease_us or DEFAULT_LEASE

    def _make_worker_context(self, registry: Registry, config: WorkerConfig) -> WorkerContext:
        from ropewalk.runners.memory import check_supported  # An app without a worker needs no process pool.
        from ropewalk.runners.processes import ProcessPool

        check_supported(registry)
        app_state, logs = self._app_state, self.settings.logs
        if LOGS not in app_state.store.capabilities:
            logs = structs.replace(logs, keep=None)
        return WorkerContext(
            owner=app_state.runtime.token(),
            store=app_state.store,
            runtime=app_state.runtime,
            registry=registry,
            unregistered=app_state.unregistered,
            events=app_state.events,
            codec=app_state.codec,
            bounds=app_state.bounds,
            defaults=app_state.defaults,
            lease_us=config.lease_us,
            middlewares=self.settings.middlewares,
            isolation=ProcessPool(
                size=config.slots,
                bounds=app_state.bounds,
                defaults=app_state.defaults,
                runtime=app_state.runtime,
                report=app_state.events.report,
                logs=logs,
            ),
            logs=logs,
            tracing=app_state.tracing,
        )

    @asynccontextmanager
    async def _resources(self) -> AsyncGenerator[tuple[object, ...]]:
        assert self.settings.lifespan is not None
        async with self.settings.lifespan(self) as yielded:
            if isinstance(yielded, tuple):
                yield yielded
            else:
                yield (yielded,)


def _declared(value: object, field: str) -> DeclaredSchedule:
    return checks.instance(value, field, DeclaredSchedule, 'schedule("nightly", cron="30 3 * * *", job=report())')


def _item(value: object, field: str) -> Item:
    if isinstance(value, JobType | Registry | ModuleType):
        return cast("Item", value)
    raise InvalidInput(
        f"{field}={shown(value)} is no job type, Registry or module; is the function decorated with @job?",
        field=field,
    )
