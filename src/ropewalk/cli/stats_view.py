"""Prints statistics for people: timelines, a row for each type or queue, and the number of jobs in each state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import click

from ropewalk.cli import render
from ropewalk.domain.jobs.states import State
from ropewalk.domain.statistics.aggregation import By
from ropewalk.domain.statistics.statistics import Flow, Latency, Statistics
from ropewalk.domain.time import Span, to_datetime, to_seconds

_BARS: Final = "▁▂▃▄▅▆▇█"
_NOTHING: Final = "·"
_LINES: Final[tuple[tuple[str, str, Callable[[Flow], int]], ...]] = (
    ("submitted", "blue", lambda flow: flow.submitted),
    ("completed", "green", lambda flow: flow.completed),
    ("retried", "yellow", lambda flow: flow.retried),
    ("failed", "red", lambda flow: flow.failed + flow.dead_letter),
    ("cancelled", "magenta", lambda flow: flow.cancelled),
)
_MEASURES: Final = ("RATE", "WAIT p50", "p95", "RUN p50", "p95", "p99", "TOTAL p95")
_COUNTS: Final = {
    "submitted": "SUBMITTED",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "dead_letter": "DEAD",
    "cancelled": "CANCELLED",
    "retried": "RETRIED",
}


def echo_stats(told: Statistics, by: By) -> None:
    """Print all statistics of one answer."""
    since, until = to_datetime(told.since), to_datetime(told.until)
    render.echo(f"{render.moment(since)} to {render.moment(until)}, in steps of {_slice(told.slice_us)}")
    render.echo()
    if told.flow == Flow():
        render.echo("nothing happened")
    else:
        _echo_lines(told)
        render.echo()
        _echo_shares(told, by)
    if told.standing:
        render.echo()
        _echo_standing(told)


def document(told: Statistics) -> dict[str, object]:
    """Return the statistics for JSON: times in ISO 8601, durations in µs."""
    return {
        "since": to_datetime(told.since),
        "until": to_datetime(told.until),
        "slice_us": told.slice_us,
        "finished_per_second": told.finished_per_second,
        "flow": told.flow,
        "line": [{"at": to_datetime(each.at), "flow": each.flow} for each in told.line],
        "shares": told.shares,
        "states": told.states,
        "standing": told.standing,
    }


def sparkline(counts: Sequence[int]) -> str:
    """Draw counts as bars; the largest count gets a full bar, and every count above 0 a visible one."""
    top = max(counts, default=0)
    return "".join(_BARS[-(-count * len(_BARS) // top) - 1] if count else _NOTHING for count in counts)


def rate_text(count: int, seconds: float) -> str:
    """Return a rate per second, minute or hour, in the first of these units in which it is at least 1."""
    for per, unit in ((1, "s"), (60, "min"), (3_600, "h")):
        rate = count / seconds * per
        if rate >= 1 or unit == "h":
            break
    return f"{rate:,.0f}/{unit}".replace(",", " ") if rate >= 10 else f"{rate:.1f}/{unit}"


def _echo_lines(told: Statistics) -> None:
    width = max(len(_number(count(told.flow))) for _, _, count in _LINES)
    for name, colour, count in _LINES:
        total = count(told.flow)
        if total or name == "completed":
            drawn = click.style(sparkline([count(each.flow) for each in told.line]), fg=colour)
            label = click.style(f"{name:<9}", bold=True)
            render.echo(f"{label}  {drawn}  {_number(total):>{width}}  {rate_text(total, told.seconds)}")


def _echo_shares(told: Statistics, by: By) -> None:
    flows = [each.flow for each in told.shares]
    counts = [name for name in _COUNTS if name == "completed" or any(getattr(flow, name) for flow in flows)]
    names = [*(["QUEUE"] if by != "type" else []), *(["TYPE"] if by != "queue" else [])]
    header = [*names, *(_COUNTS[name] for name in counts), *_MEASURES]
    rows = [
        [*map(render.safe, filter(None, (each.queue, each.type))), *_cells(each.flow, counts, told.seconds)]
        for each in told.shares
    ]
    if len(rows) > 1:
        rows.append(["all", *[""] * (len(names) - 1), *_cells(told.flow, counts, told.seconds)])
    _echo_aligned(header, rows, words=len(names))


def _cells(flow: Flow, counts: Iterable[str], seconds: float) -> list[str]:
    shown = [_number(number) if (number := getattr(flow, name)) else "" for name in counts]
    wait, run, total = flow.wait, flow.run, flow.total
    return [
        *shown,
        rate_text(flow.finished, seconds) if flow.finished else "",
        *_spans(wait, wait.p50_us, wait.p95_us),
        *_spans(run, run.p50_us, run.p95_us, run.p99_us),
        *_spans(total, total.p95_us),
    ]


def _spans(latency: Latency, *spans_us: Span) -> list[str]:
    return [_span(each) if latency.count else "" for each in spans_us]


def _span(span_us: Span) -> str:
    return f"{span_us} µs" if span_us < 1000 else render.span(to_seconds(span_us))


def _echo_standing(told: Statistics) -> None:
    """Print how many jobs are in each state now."""
    states = [state for state in State if state in told.states]
    header = ["NOW", *(state.value for state in states)]
    rows = [[render.safe(f"{each.queue}/{each.type}"), *_standing(each.states, states)] for each in told.standing]
    if len(rows) > 1:
        rows.append(["all", *_standing(told.states, states)])
    _echo_aligned(header, rows, words=1)


def _standing(jobs: Mapping[State, int], states: Iterable[State]) -> list[str]:
    return [_number(jobs[state]) if state in jobs else "" for state in states]


def _echo_aligned(header: list[str], rows: list[list[str]], *, words: int) -> None:
    """Print a table whose first `words` columns are aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    aligned = [
        [cell if at < words else cell.rjust(widths[at]) for at, cell in enumerate(row)] for row in (header, *rows)
    ]
    render.echo_table(aligned[0], aligned[1:])


def _number(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _slice(slice_us: Span) -> str:
    minutes = slice_us // 60_000_000
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"
