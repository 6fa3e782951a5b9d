"""T1, T3: how a schedule begins, is edited, declared again, paused and resumed; and the ids of its jobs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec import structs

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.due import due
from ropewalk.domain.schedules.schedule import (
    ByCron,
    ByFunction,
    Every,
    Plan,
    Schedule,
    begin,
    declare,
    edit,
    fire_id,
    job_of,
    pause,
    resume,
)
from ropewalk.domain.time import DAY, HOUR, MINUTE
from ropewalk.errors import InvalidInput

NOW = 400 * DAY + 5 * HOUR
REPORT = NewJob(id="made-when-declared", type="report", input=b"{}", queue="nightly")
DAILY = Plan(timing=ByCron("0 6 * * *"), work=REPORT)
HOURLY = Plan(timing=Every(HOUR), work=REPORT)
TIDES = Plan(timing=ByFunction("tides"), work=REPORT)
FUNCTIONS = {"tides": lambda after: after + 3 * HOUR}


def test_a_schedule_begins_after_now() -> None:
    schedule = begin("daily", DAILY, NOW, tenant="acme")
    assert schedule.next_fire == NOW + HOUR
    assert (schedule.tenant, schedule.generation, schedule.last_fire) == ("acme", 1, None)
    assert not schedule.paused
    assert not schedule.overridden
    assert begin("daily", DAILY, NOW + HOUR).next_fire == NOW + HOUR + DAY


def test_an_interval_begins_an_interval_after_now() -> None:
    schedule = begin("hourly", HOURLY, NOW)
    assert schedule.next_fire == NOW + HOUR
    assert schedule.plan.timing == Every(HOUR, NOW)


def test_a_function_begins_where_it_is_registered() -> None:
    assert begin("tides", TIDES, NOW, functions=FUNCTIONS).next_fire == NOW + 3 * HOUR
    with pytest.raises(
        InvalidInput, match=r"ByFunction\(function='tides'\) is not registered in this process"
    ) as refused:
        begin("tides", TIDES, NOW)
    assert refused.value.field == "next"


def test_an_unknown_policy_is_refused() -> None:
    wrong: Any = "never"
    with pytest.raises(InvalidInput, match="missed='never' is unknown: give 'skip', 'once' or 'all'") as refused:
        begin("daily", structs.replace(DAILY, missed=wrong), NOW)
    assert refused.value.field == "missed"


def test_an_edit_is_another_generation_and_stays() -> None:
    schedule = begin("daily", DAILY, NOW)
    edited = edit(schedule, Plan(timing=ByCron("0 7 * * *"), work=REPORT), NOW + MINUTE)
    assert (edited.generation, edited.overridden, edited.next_fire) == (2, True, NOW + 2 * HOUR)
    assert declare(edited, DAILY, NOW + HOUR) == edited
    again = declare(edited, DAILY, NOW + MINUTE, reset=True)
    assert (again.generation, again.overridden, again.next_fire) == (3, False, NOW + HOUR)


def test_an_edit_of_something_else_than_the_times_keeps_them() -> None:
    """A fire that is due and not yet taken is not lost by it."""
    schedule = begin("hourly", HOURLY, NOW)
    edited = edit(schedule, structs.replace(HOURLY, missed="all"), NOW + 5 * HOUR)
    assert edited.plan.timing == Every(HOUR, NOW)
    assert (edited.next_fire, edited.generation) == (NOW + HOUR, 2)
    assert len(due(edited, NOW + 5 * HOUR).fires) == 5


def test_an_edited_interval_has_a_new_anchor() -> None:
    schedule = begin("hourly", HOURLY, NOW)
    edited = edit(schedule, Plan(timing=Every(DAY), work=REPORT), NOW + 7)
    assert (edited.plan.timing, edited.next_fire) == (Every(DAY, NOW + 7), NOW + 7 + DAY)


def test_declaring_the_same_changes_nothing() -> None:
    """At every start the code builds its job anew, with another id, and says an interval without an anchor."""
    for plan in (DAILY, HOURLY, TIDES):
        schedule = begin("same", plan, NOW, functions=FUNCTIONS)
        rebuilt = structs.replace(plan, work=structs.replace(REPORT, id="made-at-the-next-start"))
        assert declare(schedule, rebuilt, NOW + 30 * DAY) == schedule


def test_declaring_something_else_edits() -> None:
    schedule = begin("hourly", HOURLY, NOW)
    for plan in (DAILY, structs.replace(HOURLY, missed="once"), structs.replace(HOURLY, work="make_report")):
        declared = declare(schedule, plan, NOW + MINUTE)
        assert (declared.generation, declared.overridden) == (2, False)
        assert declared.plan.missed == plan.missed
        assert type(declared.plan.timing) is type(plan.timing)


def test_reset_gives_the_code_the_last_word_even_when_nothing_else_changes() -> None:
    schedule = structs.replace(begin("daily", DAILY, NOW), overridden=True)
    assert declare(schedule, DAILY, NOW, reset=True) == structs.replace(schedule, overridden=False)


@pytest.mark.parametrize("plan", [DAILY, HOURLY, TIDES], ids=["cron", "every", "next"])
def test_what_falls_into_a_pause_was_not_missed(plan: Plan) -> None:
    schedule = pause(begin("x", structs.replace(plan, missed="all"), NOW, functions=FUNCTIONS))
    later = NOW + 10 * DAY
    resumed = resume(schedule, later, functions=FUNCTIONS)
    assert not resumed.paused
    assert resumed.next_fire is not None and later < resumed.next_fire <= later + DAY
    assert due(resumed, later, FUNCTIONS).fires == ()


def test_a_pause_shorter_than_the_wait_changes_nothing() -> None:
    schedule = begin("daily", DAILY, NOW)
    assert resume(pause(schedule), NOW + MINUTE) == schedule
    tides = begin("tides", TIDES, NOW, functions=FUNCTIONS)
    assert resume(pause(tides), NOW + HOUR, functions=FUNCTIONS) == tides


def test_resuming_what_is_not_paused_loses_nothing() -> None:
    schedule = begin("hourly", HOURLY, NOW)
    assert resume(schedule, NOW + DAY) == schedule


def test_a_pause_can_be_ended_where_the_function_is_not_registered() -> None:
    schedule = begin("tides", TIDES, NOW, functions=FUNCTIONS)
    assert resume(pause(schedule), NOW + DAY) == schedule


def test_ids_follow_from_schedule_generation_and_time() -> None:
    schedule = begin("daily", DAILY, NOW, tenant="acme")
    assert fire_id(schedule, NOW) == fire_id(pause(schedule), NOW)
    assert UUID(fire_id(schedule, NOW)).version == 5
    others = [
        (schedule, NOW + 1),
        (structs.replace(schedule, generation=2), NOW),
        (structs.replace(schedule, name="weekly"), NOW),
        (structs.replace(schedule, tenant="other"), NOW),
        (structs.replace(schedule, tenant="a", name="b/c"), NOW),
        (structs.replace(schedule, tenant="a/b", name="c"), NOW),
        (structs.replace(schedule, tenant='a","b', name="c"), NOW),
        (structs.replace(schedule, tenant="a", name='b","c'), NOW),
    ]
    assert len({fire_id(schedule, NOW), *(fire_id(*other) for other in others)}) == len(others) + 1


def test_ids_are_the_same_in_every_release() -> None:
    """They are compared with stored ones: a change here would let a fire happen twice during an upgrade."""
    schedule = Schedule(name="daily", tenant="acme", plan=DAILY, generation=3, next_fire=None)
    assert fire_id(schedule, 1_700_000_000_000_000) == "3181ef35-a84a-51f9-8c4c-43704b42f62e"


def test_the_job_of_a_fire_is_the_template_with_an_id_of_its_own() -> None:
    schedule = begin("daily", DAILY, NOW, tenant="acme")
    template = schedule.plan.work
    assert isinstance(template, NewJob)
    assert template.id == ""
    made = job_of(schedule, template, NOW)
    assert made == structs.replace(REPORT, id=fire_id(schedule, NOW), tenant="acme")


@pytest.mark.parametrize("plan", [DAILY, HOURLY, TIDES, Plan(timing=ByCron("@daily"), work="make", missed="all")])
def test_a_schedule_survives_being_stored(plan: Plan) -> None:
    schedule = begin("x", plan, NOW, functions=FUNCTIONS)
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule
