"""R14: the alarm goes off when jobs waited too long and there may be more, and says when that is over."""

from __future__ import annotations

import pytest

from ropewalk.errors import InvalidInput
from ropewalk.worker.policies.backlog import Backlog, BacklogAlarm


def test_once_when_it_begins_and_once_when_it_is_over() -> None:
    backlog = Backlog(BacklogAlarm(older_than=60))
    seen = [(60, True), (61, True), (90, True), (61, False), (61, False), (61, True), (1, True), (0, False)]
    told = [backlog.saw(waited, filled=filled, now=float(now)) for now, (waited, filled) in enumerate(seen)]
    assert told == [None, "backlog", None, "backlog_over", None, "backlog", "backlog_over", None]


def test_again_while_it_lasts() -> None:
    backlog = Backlog(BacklogAlarm(older_than=60, every=10))
    told = [now for now in range(35) if backlog.saw(99, filled=True, now=float(now)) == "backlog"]
    assert told == [0, 10, 20, 30]


@pytest.mark.parametrize(("older_than", "every", "named"), [(-1, None, "older_than"), (1, 0, "every")])
def test_one_that_cannot_be_is_refused(older_than: float, every: float | None, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        BacklogAlarm(older_than=older_than, every=every)
    assert refused.value.field == named
