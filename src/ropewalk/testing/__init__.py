"""For your tests: a fake clock, an in-memory double of your app, a pytest plugin, and the backend contract suite.

>>> rehearsal = Rehearsal(app)                     # your app's types and options, in memory, on a fake clock
>>> assert await rehearsal.run(add(1, b=2)) == 3   # one job, payload encoded and decoded as in production
>>> await rehearsal.enqueue(report(day="monday"), delay=3600)
>>> rehearsal_jobs = await rehearsal.assert_enqueued(report, day="monday")
>>> await rehearsal.advance(hours=1)
>>> await rehearsal.drain()                        # runs whatever is ready
"""

from __future__ import annotations

from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.rehearsal import Rehearsal
from ropewalk.testing.stalls import Stalled

__all__ = ["FakeRuntime", "Rehearsal", "Stalled"]
