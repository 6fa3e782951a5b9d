"""T1: what an expression means, and what is said about one that means nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ropewalk.domain.schedules.cron import EXPRESSION_CHARS_MAX, Cron, parse_cron
from ropewalk.domain.schedules.fire_times import next_after
from ropewalk.errors import InvalidInput


def numbers(mask: int) -> list[int]:
    return [number for number in range(64) if mask >> number & 1]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("*", list(range(24))),
        ("*/1", list(range(24))),
        ("*/7", [0, 7, 14, 21]),
        ("*/24", [0]),
        ("5", [5]),
        ("05", [5]),
        ("0,23", [0, 23]),
        ("3,1,2,2", [1, 2, 3]),
        ("9-12", [9, 10, 11, 12]),
        ("9-9", [9]),
        ("8-18/4", [8, 12, 16]),
        ("20/2", [20, 22]),
        ("22-2", [0, 1, 2, 22, 23]),
        ("21-4/3", [0, 3, 21]),
        ("1-3,*/12,22", [0, 1, 2, 3, 12, 22]),
    ],
)
def test_numbers_of_a_field(field: str, expected: list[int]) -> None:
    assert numbers(parse_cron(f"0 {field} * * *").hours) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [("JAN", [1]), ("jan-Mar", [1, 2, 3]), ("NOV-FEB", [1, 2, 11, 12]), ("*/5", [1, 6, 11]), ("2/5", [2, 7, 12])],
)
def test_months(field: str, expected: list[int]) -> None:
    assert numbers(parse_cron(f"0 0 1 {field} *").months) == expected


# June 2026 begins on a Monday: Sundays are the 7th, 14th, 21st and 28th.
@pytest.mark.parametrize(
    ("day", "weekday", "expected"),
    [
        ("*", "SUN", [7, 14, 21, 28]),
        ("*", "0", [7, 14, 21, 28]),
        ("*", "7", [7, 14, 21, 28]),
        ("*", "5-7", [5, 6, 7, 12, 13, 14, 19, 20, 21, 26, 27, 28]),
        ("*", "FRI-SUN", [5, 6, 7, 12, 13, 14, 19, 20, 21, 26, 27, 28]),
        ("*", "SAT-MON", [1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28, 29]),
        ("*", "0-7", list(range(1, 31))),
        ("*", "7-1", [1, 7, 8, 14, 15, 21, 22, 28, 29]),
        ("*", "*/3", [3, 6, 7, 10, 13, 14, 17, 20, 21, 24, 27, 28]),
        ("*", "5/1", [5, 6, 12, 13, 19, 20, 26, 27]),
        ("*", "7/2", [7, 14, 21, 28]),
        ("*", "MON#1", [1]),
        ("*", "mon#5,TUE#5", [29, 30]),
        ("*", "WED#5", []),
        ("*", "7#2", [14]),
        ("*", "FRIL", [26]),
        ("*", "2L,SUN#1", [7, 30]),
        ("L", "*", [30]),
        ("15,L", "*", [15, 30]),
        ("31", "*", []),
        ("30-2", "*", [1, 2, 30]),
        ("10/10", "*", [10, 20, 30]),
        # Both restricted: one is enough. With a star anywhere: both must fit.
        ("1,15", "SUN", [1, 7, 14, 15, 21, 28]),
        ("L", "MON#1", [1, 30]),
        ("*/7", "MON", [1, 8, 15, 22, 29]),
        ("*/2", "SUN", [7, 21]),
        ("15", "*/2", []),
        ("7,8", "*/7", [7]),
        ("1-7", "*", [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_days(day: str, weekday: str, expected: list[int]) -> None:
    assert june_2026(f"0 0 {day} * {weekday}") == expected


def june_2026(expression: str) -> list[int]:
    days: list[int] = []
    fire = next_after(expression, datetime(2026, 5, 31, 23, 59, tzinfo=UTC))
    while fire is not None and (fire.year, fire.month) == (2026, 6):
        days.append(fire.day)
        fire = next_after(expression, fire)
    return days


@pytest.mark.parametrize(
    ("alias", "same"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 JAN *"),
        (" @Annually ", "0 0 1 1 *"),
        ("  5\t4 * *  MON ", "5 4 * * 1"),
        ("0 5 4 * * *", "5 4 * * *"),
    ],
)
def test_the_same_said_otherwise(alias: str, same: str) -> None:
    assert meaning(parse_cron(alias)) == meaning(parse_cron(same))
    assert parse_cron(alias).expression == str(parse_cron(alias)) == alias


def meaning(cron: Cron) -> tuple[object, ...]:
    return cron.seconds, cron.minutes, cron.hours, cron.months, cron.days, cron.fixed


def test_seconds_come_first() -> None:
    cron = parse_cron("*/20 1 2 3 4 5")
    assert (numbers(cron.seconds), numbers(cron.minutes), numbers(cron.hours)) == ([0, 20, 40], [1], [2])
    assert numbers(parse_cron("1 2 3 4 5").seconds) == [0]


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [
        ("30 2 * * *", True),
        ("0-59 2-4 */2 * MON", True),
        ("0/5 2 * * *", True),
        ("* 2 * * *", False),
        ("*/30 2 * * *", False),
        ("5,*/30 2 * * *", False),
        ("30 * * * *", False),
        ("0 */6 * * *", False),
        ("0 30 2 * * *", True),
        ("* 30 2 * * *", False),
    ],
)
def test_which_have_fixed_times(expression: str, fixed: bool) -> None:
    assert parse_cron(expression).fixed is fixed


RANGES = [
    ("second", "{} 0 0 1 1 0", 1, 0, 59),
    ("minute", "{} 0 1 1 0", 1, 0, 59),
    ("hour", "0 {} 1 1 0", 3, 0, 23),
    ("day of month", "0 0 {} * *", 5, 1, 31),
    ("month", "0 0 1 {} 0", 7, 1, 12),
    ("day of week", "0 0 * * {}", 9, 0, 7),
]


@pytest.mark.parametrize(("name", "form", "column", "low", "high"), RANGES)
def test_both_sides_of_every_bound(name: str, form: str, column: int, low: int, high: int) -> None:
    for good in (low, high):
        parse_cron(form.format(good))
    for bad in (low - 1, high + 1):
        with pytest.raises(InvalidInput) as refused:
            parse_cron(form.format(bad))
        assert f"{name} '{bad}' at character {column} " in str(refused.value)
        assert refused.value.field == "cron"
        if bad > 0:
            assert f"is out of range: give {low} to {high}" in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "has 0 fields: give 5 (minute, hour, day of month, month, day of week), or 6 with the second first"),
        ("* * * *", "has 4 fields: give 5"),
        ("0 * * * * * 2026", "has 7 fields: give 5"),
        ("@reboot", "'@reboot' is no known name: give one of @hourly, @daily"),
        ("@every 5m", "is no known name"),
        ("61 * * * *", "cron '61 * * * *': minute '61' at character 1 is out of range: give 0 to 59"),
        ("0 0 1 13 *", "month '13' at character 7 is out of range: give 1 to 12 or JAN to DEC"),
        ("0 0 * * MONDAY", "day of week 'MONDAY' at character 9 is out of range: give 0 to 7 or SUN to SAT"),
        ("0 0 * MON *", "month 'MON' at character 7 is out of range"),
        ("0 JAN * * *", "hour 'JAN' at character 3 is out of range: give 0 to 23"),
        ("0  1,2,24,3 * * *", "hour '24' at character 8 is out of range"),
        ("0 1-99 * * *", "hour '1-99' at character 3 is out of range"),
        ("0 1,,2 * * *", "hour '' at character 5 cannot be read: give *, a number, a range a-b or a list a,b"),
        ("1, * * * *", "minute '' at character 3 cannot be read"),
        ("-5 * * * *", "minute '-5' at character 1 cannot be read"),
        ("1-2-3 * * * *", "minute '1-2-3' at character 1 cannot be read"),
        ("*-5 * * * *", "minute '*-5' at character 1 cannot be read"),
        ("5- * * * *", "minute '5-' at character 1 cannot be read"),
        ("*5 * * * *", "minute '*5' at character 1 cannot be read"),
        ("1.5 * * * *", "minute '1.5' at character 1 cannot be read"),
        ("0 0 ? * *", "day of month '?' at character 5 cannot be read"),
        ("٣ * * * *", "cannot be read"),
        ("*/0 * * * *", "minute '*/0' at character 1 has a step outside 1 to 60: for longer intervals use every="),
        ("*/61 * * * *", "has a step outside 1 to 60"),
        ("0 */25 * * *", "hour '*/25' at character 3 has a step outside 1 to 24"),
        ("*/ * * * *", "minute '*/' at character 1 cannot be read"),
        ("*/-1 * * * *", "minute '*/-1' at character 1 cannot be read"),
        ("*/5/5 * * * *", "cannot be read"),
        ("L * * * *", "minute 'L' at character 1 is out of range"),
        ("0 0 L-3 * *", "day of month 'L-3' at character 5 is out of range"),
        ("0 0 5#1 * *", "day of month '5#1' at character 5 cannot be read"),
        ("0 0 * * L", "day of week 'L' at character 9 is out of range"),
        ("0 0 * * 8L", "day of week '8L' at character 9 is out of range"),
        ("0 0 * * MON#0", "day of week 'MON#0' at character 9 counts outside the month: give #1 to #5"),
        ("0 0 * * MON#6", "counts outside the month"),
        ("0 0 * * MON#", "cannot be read"),
        ("0 0 30 2 *", "day of month '30' at character 5 never comes in the months named: give a day that one"),
        ("0 0 31 4,6,9,NOV *", "never comes"),
        ("0 0 30-31 FEB */2", "never comes"),
        ("0 0 */20 * 1L", "day of month '*/20' at character 5 never comes"),
    ],
)
def test_what_cannot_be_read(expression: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_cron(expression)
    assert told in str(refused.value)
    assert str(refused.value).startswith(f"cron {expression!r}")
    assert refused.value.field == "cron"


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 30 2 MON", "0 0 31 * *", "0 0 30 1-2 *", "0 0 * 2 MON#5"])
def test_what_comes_seldom_is_accepted(expression: str) -> None:
    assert next_after(expression, datetime(2026, 1, 1, tzinfo=UTC)) is not None


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_no_text(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^cron=.* is not a string: write it like") as refused:
        parse_cron(value)
    assert refused.value.field == "cron"


def test_length_is_bounded() -> None:
    longest = "0" + ",0" * ((EXPRESSION_CHARS_MAX - 9) // 2) + " * * * *"
    padded = longest + " " * (EXPRESSION_CHARS_MAX - len(longest))
    assert parse_cron(padded).minutes == 1
    with pytest.raises(InvalidInput, match="1,001 characters, over 1,000"):
        parse_cron(padded + " ")
