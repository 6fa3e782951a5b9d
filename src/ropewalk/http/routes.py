"""The whole table of routes, family by family."""

from __future__ import annotations

from typing import Final

from ropewalk.http import documentation, health
from ropewalk.http.events import routes as events
from ropewalk.http.identity import routes as identity
from ropewalk.http.jobs import changing, failures, reading, searching, submitting
from ropewalk.http.limits import routes as limits
from ropewalk.http.queues import routes as queues
from ropewalk.http.remote_workers import routes as remote_workers
from ropewalk.http.routing import Route
from ropewalk.http.schedules import routes as schedules
from ropewalk.http.statistics import routes as statistics
from ropewalk.http.types import routes as types
from ropewalk.http.workers import routes as workers
from ropewalk.http.workflows import routes as workflows

ALL_ROUTES: Final[tuple[Route, ...]] = (
    *submitting.routes,
    *searching.routes,
    *reading.routes,
    *changing.routes,
    *failures.routes,
    *workflows.routes,
    *statistics.routes,
    *queues.routes,
    *limits.routes,
    *workers.routes,
    *schedules.routes,
    *types.routes,
    *events.routes,
    *remote_workers.routes,
    *identity.routes,
    *health.routes,
    *documentation.routes,
)
