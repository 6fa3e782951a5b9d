"""What the worker command tells about an app and the app's public face does not: its store's URL, and every event."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ropewalk.app import App
from ropewalk.connect import masked
from ropewalk.engine.events import Event


def url_of(app: App) -> str:
    """Fit for showing: without a password."""
    path = getattr(app._core.store, "_path", None)
    return "memory://" if path is None else masked(f"sqlite:///{path}")


def events_of(app: App) -> AsyncIterator[Event]:
    """Of all tenants: `app.events()` is bound to one."""
    return app._core.events.stream()
