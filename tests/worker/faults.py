"""A store whose verbs fail when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ropewalk import App, OutcomeUnknown, StoreUnavailable
from ropewalk.domain.jobs.transition import Settlement


class Faults:
    """Makes chosen verbs of a real store fail: before they do anything, or after they committed."""

    def __init__(self, app: App) -> None:
        self._store: Any = app._app_state.store

    def refuse(self, verb: str, times: int) -> asyncio.Event:
        """The next `times` calls change nothing and raise StoreUnavailable."""
        return self._fail(verb, times, StoreUnavailable("injected"), commits=False)

    def lose_reply(self, verb: str, times: int) -> asyncio.Event:
        """The next `times` calls take effect, but their answer is lost."""
        return self._fail(verb, times, OutcomeUnknown("injected"), commits=True)

    def fail(self, verb: str, times: int, error: Exception) -> asyncio.Event:
        """The next `times` calls change nothing and raise this."""
        return self._fail(verb, times, error, commits=False)

    def fail_for(self, verb: str, member: str, error: Exception) -> None:
        """Every call that names this member among others changes nothing and raises this."""
        real = getattr(self._store, verb)

        async def faulty(*args: Any, **kwargs: Any) -> Any:
            if member in repr((args, kwargs)):
                raise error
            return await real(*args, **kwargs)

        setattr(self._store, verb, faulty)

    def fail_settling(self, job_id: str, error: Exception, times: int) -> None:
        """Settlements together with that of this job change nothing and raise this, so many times."""
        real, left = self._store.settle, times

        async def faulty(owner: str, settlements: Sequence[Settlement]) -> Any:
            nonlocal left
            job = (await self._store.get("default", [job_id])).jobs[job_id]
            if left and job.seq in {each.seq for each in settlements}:
                left -= 1
                raise error
            return await real(owner, settlements)

        self._store.settle = faulty

    def _fail(self, verb: str, times: int, error: Exception, *, commits: bool) -> asyncio.Event:
        real = getattr(self._store, verb)
        over = asyncio.Event()
        left = times

        async def faulty(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                return await real(*args, **kwargs)
            left -= 1
            if left == 0:
                over.set()
            if commits:
                await real(*args, **kwargs)
            raise error

        setattr(self._store, verb, faulty)
        return over
