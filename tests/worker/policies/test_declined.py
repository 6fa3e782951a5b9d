"""R14: what was declined is passed over for a while, longer each time, and not for ever."""

from __future__ import annotations

from ropewalk.worker.policies.admission import REMEMBERED_MAX, Declined


def test_each_time_for_twice_as_long() -> None:
    declined, now, spans = Declined(), 0.0, []
    for _ in range(8):
        assert declined.add(7, now)
        began = now
        while 7 in declined.ignored(now):
            now += 0.5
        spans.append(now - began)
    assert spans == [1, 2, 4, 8, 16, 32, 60, 60]


def test_there_is_a_bound_to_what_is_remembered() -> None:
    declined = Declined()
    assert all(declined.add(seq, 0.0) for seq in range(REMEMBERED_MAX))
    assert not declined.add(REMEMBERED_MAX, 1.5), "not yet: those are known for twice their time"
    assert declined.add(0, 1.5), "one that is known already"
    assert declined.add(REMEMBERED_MAX, 2.0)
    assert declined.ignored(2.0) == {0, REMEMBERED_MAX}
