"""Help for tests: a fake clock, an in-memory double of an app, a pytest plugin, and the contract suite for backends.

>>> rehearsal = Rehearsal(app)                     # the types and options of your app, in memory, on a fake clock
>>> assert await rehearsal.run(add(1, b=2)) == 3   # one job, payload encoded and decoded as in production
>>> await rehearsal.enqueue(report(day="monday"), delay=3600)
>>> rehearsal_jobs = await rehearsal.assert_enqueued(report, day="monday")
>>> await rehearsal.advance(hours=1)
>>> await rehearsal.drain()                        # runs all jobs that are ready
"""

from __future__ import annotations

from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.rehearsal import Rehearsal
from ropewalk.testing.stalls import Stalled

__all__ = ["FakeRuntime", "Rehearsal", "Stalled"]
