"""The whole table of routes, family by family."""

from __future__ import annotations

from typing import Final

from ropewalk.http import documentation, health
from ropewalk.http.jobs import changing, reading, searching, submitting
from ropewalk.http.routing import Route

ALL_ROUTES: Final[tuple[Route, ...]] = (
    *submitting.routes,
    *searching.routes,
    *reading.routes,
    *changing.routes,
    *health.routes,
    *documentation.routes,
)
