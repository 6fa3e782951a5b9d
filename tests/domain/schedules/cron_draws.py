"""Random cron expressions, each drawn together with its meaning."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import strategies as st

from tests.domain.schedules.clocks import Spec

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

Drawn = tuple[str, frozenset[int]]


@st.composite
def terms(draw: st.DrawFn, low: int, high: int, names: list[str]) -> Drawn:
    numbers = list(range(low, high + 1))
    kind = draw(st.sampled_from(["*", "*/n", "a", "a/n", "a-b", "a-b/n"]))
    step = draw(st.integers(1, len(numbers))) if kind.endswith("/n") else 1
    suffix = f"/{step}" if kind.endswith("/n") else ""
    if kind.startswith("*"):
        return f"*{suffix}", frozenset(numbers[::step])
    first, last = draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
    written = [draw(st.sampled_from(spellings(number, low, names))) for number in (first, last)]
    if "-" not in kind:
        tail = numbers[first - low :] if suffix else [first]
        return f"{written[0]}{suffix}", frozenset(tail[::step])
    walked = [first]
    while walked[-1] != last:
        walked.append(walked[-1] + 1 if walked[-1] < high else low)
    return f"{written[0]}-{written[1]}{suffix}", frozenset(walked[::step])


def spellings(number: int, low: int, names: list[str]) -> list[str]:
    return [str(number), f"{number:02}", *([names[number - low], names[number - low].lower()] if names else [])]


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, names: list[str] | None = None) -> Drawn:
    drawn = draw(st.lists(terms(low, high, names or []), min_size=1, max_size=3))
    return ",".join(text for text, _ in drawn), frozenset[int]().union(*(numbers for _, numbers in drawn))


@st.composite
def specs(draw: st.DrawFn, *, with_seconds: bool = False) -> Spec:
    second: Drawn = draw(fields(0, 59)) if with_seconds else ("", frozenset({0}))
    minute, hour = draw(fields(0, 59)), draw(fields(0, 23))
    day, month, weekday = draw(fields(1, 31)), draw(fields(1, 12, MONTHS)), draw(fields(0, 6, WEEKDAYS))
    last = draw(st.booleans())
    nth = draw(st.none() | st.tuples(st.integers(0, 6), st.integers(1, 5)))
    final = draw(st.none() | st.integers(0, 6))
    days = f"{day[0]},L" if last else day[0]
    weekdays = weekday[0]
    weekdays += f",{WEEKDAYS[nth[0]]}#{nth[1]}" if nth else ""
    weekdays += f",{WEEKDAYS[final]}L" if final is not None else ""
    either = "*" not in days and "*" not in weekdays

    def fits_day(wall: datetime) -> bool:
        on = wall.isoweekday() % 7
        next_week = wall + timedelta(days=7)
        fits_month = wall.day in day[1] or (last and (wall + timedelta(days=1)).day == 1)
        fits_week = on in weekday[1] or (on, (wall.day + 6) // 7) == nth or (on == final and next_week.day < wall.day)
        return wall.month in month[1] and (fits_month or fits_week if either else fits_month and fits_week)

    times = [second[0], minute[0], hour[0]]
    text = " ".join([*times, days, month[0], weekdays]).strip()
    return Spec(text, minute[1], hour[1], fits_day, fixed="*" not in "".join(times), seconds=second[1])
