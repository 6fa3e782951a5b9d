"""Imported only in a handler's process, never in the worker."""

from __future__ import annotations

from ropewalk import job


@job
async def stranger() -> None: ...
