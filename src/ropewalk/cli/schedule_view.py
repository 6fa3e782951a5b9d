"""Prints schedules for people: all as a table, one in detail, and its next fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from ropewalk.cli import render
from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.redaction import redacted
from ropewalk.domain.time import to_datetime
from ropewalk.runtime.system import SystemRuntime


def echo_schedules(schedules: Sequence[ScheduleInfo]) -> None:
    """Print schedules as a table."""
    if not schedules:
        render.echo("no schedules")
        return
    now = _now()
    render.echo_table(
        ["NAME", "WHEN", "WORK", "STATE", "NEXT", "IN"],
        [
            [
                render.safe(info.name),
                render.safe(info.when),
                render.safe(_work(info)),
                _state(info),
                "" if info.next_fire is None else _local(info.next_fire, info),
                _distance(info, now),
            ]
            for info in schedules
        ],
    )


def echo_schedule(info: ScheduleInfo) -> None:
    """Print everything about one schedule."""
    arguments = None if info.arguments is None else render.safe(render.to_json(_shown(info.arguments, info)))
    render.echo_details(
        [
            ("name", render.safe(info.name)),
            ("tenant", None if info.tenant == DEFAULT_TENANT else render.safe(info.tenant)),
            ("when", render.safe(info.when)),
            ("work", render.safe(_work(info))),
            ("queue", None if info.queue is None else render.safe(info.queue)),
            ("arguments", arguments),
            ("options", render.safe(render.to_json(info.options)) if info.options else None),
            ("missed", info.missed),
            ("state", _state(info)),
            ("edited", "at run time: code does not change it until reset=True" if info.overridden else None),
            ("generation", str(info.generation) if info.generation > 1 else None),
            ("last fire", "never" if info.last_fire is None else _local(info.last_fire, info)),
            ("next fires", "\n".join(_local(fire, info) for fire in info.upcoming) or None),
        ]
    )


def echo_fires(info: ScheduleInfo) -> None:
    """Print the next fires, in the time zone of the schedule and, if that is another one, in UTC."""
    now = _now()
    apart = info.timezone not in {None, "UTC"}
    header = ["FIRE", *(["UTC"] if apart else []), "IN"]
    rows = [
        [_local(fire, info), *([f"{fire:%Y-%m-%d %H:%M:%S}"] if apart else []), _ahead(fire, now)]
        for fire in info.upcoming
    ]
    render.echo_table(header, rows)


def presentable(info: ScheduleInfo) -> ScheduleInfo:
    """Return the schedule with arguments that fit into a JSON document, and with secrets hidden."""
    return replace(info, arguments=None if info.arguments is None else _shown(info.arguments, info))


def _shown(arguments: Mapping[str, object], info: ScheduleInfo) -> dict[str, object]:
    return {name: render.plain(value) for name, value in redacted(arguments, info.secrets).items()}


def _work(info: ScheduleInfo) -> str:
    return f"run {info.run}" if info.job_type is None else info.job_type


def _state(info: ScheduleInfo) -> str:
    if info.ended:
        return click.style("ended", fg="magenta")
    return click.style("paused", fg="yellow") if info.paused else click.style("active", fg="green")


def _local(fire: datetime, info: ScheduleInfo) -> str:
    """Return a time in the time zone of the schedule."""
    try:
        shown = fire.astimezone(UTC if info.timezone in {None, "UTC"} else ZoneInfo(str(info.timezone)))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # this machine does not know the time zone
        shown = fire
    return f"{shown:%Y-%m-%d %H:%M:%S %Z}"


def _distance(info: ScheduleInfo, now: datetime) -> str:
    return "" if info.next_fire is None else _ahead(info.next_fire, now)


def _ahead(fire: datetime, now: datetime) -> str:
    seconds = (fire - now).total_seconds()
    return render.span(seconds) if seconds >= 0 else f"{render.span(-seconds)} ago"


def _now() -> datetime:
    return to_datetime(SystemRuntime().now())
