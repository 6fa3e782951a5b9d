"""The settings of an app beside its store and its job types; its client and its workers follow them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from ropewalk.client.schedules.functions import AnyFunction
from ropewalk.definitions.middleware import Middleware
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.retention import Retention
from ropewalk.observe.events import ErrorHook, EventHook
from ropewalk.ports.tracing import Tracing
from ropewalk.worker.services.orphan_groups import OrphanHook


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of an app beside its store and its job types. Raises InvalidInput for a value that does not fit."""

    defaults: AppDefaults
    bounds: Bounds
    retention: Retention
    lifespan: Callable[[Any], AbstractAsyncContextManager[object]] | None
    middlewares: tuple[Middleware, ...] = ()
    on_event: EventHook | None
    on_error: ErrorHook | None
    on_orphan_group: OrphanHook | None
    logs: Logs
    metrics: bool
    strict: bool | None = None
    tracing: Tracing | None
    functions: tuple[AnyFunction, ...] = ()

    def __post_init__(self) -> None:
        checks.instance(self.defaults, "defaults", AppDefaults, "AppDefaults.of(timeout=30)")
        checks.instance(self.bounds, "bounds", Bounds, "Bounds(tags_max=8)")
        checks.instance(self.retention, "retention", Retention, "Retention.of(completed=3600)")
        checks.instance(self.logs, "logs", Logs, 'Logs(keep="WARNING")')
        checks.flag(self.metrics, "metrics")
        checks.flag_or_none(self.strict, "strict")
        if self.tracing is not None:
            example = "a Tracing, such as ropewalk.integrations.otel.OpenTelemetry()"
            checks.with_methods(self.tracing, "tracing", ("attempt", "sending"), example)
        for field in ("lifespan", "on_event", "on_error", "on_orphan_group"):
            checks.function_or_none(getattr(self, field), field)
