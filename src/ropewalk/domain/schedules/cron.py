"""Cron expressions: five fields, or six with seconds first, which are parsed into sets of numbers.

This module knows no clock and no zone. calendar.py knows which days of a month an expression means, and fire_times.py
when it fires on the clock of a zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ropewalk.domain.schedules.calendar import DayRule, Pattern, can_come, month_shapes
from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput

EXPRESSION_CHARS_MAX: Final = 1000


class NeverComes(InvalidInput):
    """The expression is written correctly, but no date that exists fits it, such as 30 February."""


class Cron(Pattern, frozen=True, kw_only=True):
    """A parsed expression."""

    expression: str
    fixed: bool
    """Whether the expression names its times of day, without `*` in seconds, minutes or hours."""

    def __str__(self) -> str:
        return self.expression


def parse_cron(expression: str) -> Cron:
    """Parses an expression. Raises InvalidInput, which says where the expression is wrong and what to write.

    Fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT (0 and 7 are
    Sunday); six fields begin with second 0-59. A field is `*`, a number or a list `a,b`; `a-b` is a range, which may
    wrap (`22-6`, `FRI-MON`); `/n` takes every nth of `*`, of a range or of everything from a number on. `L` is the
    last day of the month, `FRI#2` its second Friday, `FRIL` its last. `@hourly`, `@daily` (`@midnight`), `@weekly`,
    `@monthly` and `@yearly` (`@annually`) mean the beginning of each hour, day, week, month and year.

    If neither day field contains `*`, a day that fits one of them is enough; otherwise it must fit both. An expression
    that no date fits, such as 30 February, is refused.
    """
    if not isinstance(expression, str):
        raise InvalidInput(f"cron={shown(expression)} is not a string: write it like '30 6 * * MON-FRI'", field="cron")
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise InvalidInput(
            f"cron has {len(expression):,} characters, over {EXPRESSION_CHARS_MAX:,}: use ranges and steps",
            field="cron",
        )
    return _parse(expression)


class _Field(NamedTuple):
    """One of the six fields, with the numbers that it takes."""

    name: str
    low: int
    high: int
    cycle: int
    """The number of different values. The weekdays have 7, because 0 and 7 both mean Sunday."""
    names: Sequence[str] = ()
    """The names of the numbers low, low + 1, …"""

    def mask(self, first: int, last: int, step: int = 1) -> int:
        if last < first:
            last += self.cycle
        return sum({1 << (n - self.low) % self.cycle + self.low for n in range(first, last + 1, step)})


_FIELDS: Final = (
    _Field("second", 0, 59, 60),
    _Field("minute", 0, 59, 60),
    _Field("hour", 0, 23, 24),
    _Field("day of month", 1, 31, 31),
    _Field("month", 1, 12, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")),
    _Field("day of week", 0, 7, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
)

_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_RANGE: Final = re.compile(r"(\*|[0-9A-Z]+)(?:-([0-9A-Z]+))?(?:/([0-9]+))?", re.ASCII)
_NTH_WEEKDAY: Final = re.compile(r"([0-9A-Z]+)#([0-9]+)|([0-9A-Z]+)L", re.ASCII)


class _Term(NamedTuple):
    """One item in the list of a field, and its place in the expression."""

    expression: str
    field: _Field
    text: str
    column: int
    """The place of its first character in the expression, counted from 1."""

    def refusal(self, problem: str) -> InvalidInput:
        where = f"{self.field.name} {self.text!r} at character {self.column}"
        return InvalidInput(f"cron {self.expression!r}: {where} {problem}", field="cron")

    def number(self, text: str) -> int:
        field = self.field
        if text in field.names:
            return field.low + field.names.index(text)
        if text.isdigit() and field.low <= int(text) <= field.high:
            return int(text)
        named = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise self.refusal(f"is out of range: give {field.low} to {field.high}{named}")


# Schedules are stored as text, and their expressions are parsed at every fire.
@lru_cache(maxsize=1024)
def _parse(expression: str) -> Cron:
    fields = _fields(expression)
    second, minute, hour, day, month, weekday = fields
    rule = _day_rule(day, weekday)
    months = _numbers(month)
    shapes = month_shapes(rule)
    if not can_come(shapes, months):
        refusal = day[0].refusal("never comes in the months named: give a day that one of them has")
        raise NeverComes(str(refusal), field=refusal.field)
    return Cron(
        expression=expression,
        seconds=_numbers(second),
        minutes=_numbers(minute),
        hours=_numbers(hour),
        months=months,
        days=shapes,
        fixed=not (_has_star(second) or _has_star(minute) or _has_star(hour)),
    )


def _fields(expression: str) -> list[list[_Term]]:
    """Returns the terms of all six fields. An expression of five fields fires at second 0."""
    text = _ALIASES.get(expression.strip().lower(), expression)
    if text.lstrip().startswith("@"):
        raise InvalidInput(f"cron {expression!r} is no known name: give one of {', '.join(_ALIASES)}", field="cron")
    words = [(word[0].upper(), word.start() + 1) for word in re.finditer(r"\S+", text)]
    if len(words) not in {5, 6}:
        raise InvalidInput(
            f"cron {expression!r} has {len(words)} fields: give 5 (minute, hour, day of month, month, day of week), "
            "or 6 with the second first",
            field="cron",
        )
    if len(words) == 5:
        words.insert(0, ("0", 0))
    return [_terms(expression, field, *word) for field, word in zip(_FIELDS, words, strict=True)]


def _terms(expression: str, field: _Field, word: str, column: int) -> list[_Term]:
    terms: list[_Term] = []
    for text in word.split(","):
        terms.append(_Term(expression, field, text, column))
        column += len(text) + 1
    return terms


def _has_star(terms: list[_Term]) -> bool:
    return any("*" in term.text for term in terms)


def _numbers(terms: list[_Term]) -> int:
    numbers = 0
    for term in terms:
        numbers |= _range(term)
    return numbers


def _range(term: _Term) -> int:
    match = _RANGE.fullmatch(term.text)
    if match is None or (match[1] == "*" and match[2] is not None):
        raise term.refusal("cannot be read: give *, a number, a range a-b or a list a,b, each with a step /n if wanted")
    field = term.field
    step = 1 if match[3] is None else int(match[3])
    if not 1 <= step <= field.cycle:
        raise term.refusal(f"has a step outside 1 to {field.cycle}: for longer intervals use every=")
    if match[1] == "*":
        return field.mask(field.low, field.low + field.cycle - 1, step)
    first = term.number(match[1])
    if match[2] is not None:
        return field.mask(first, term.number(match[2]), step)
    return field.mask(first, first if match[3] is None else max(first, field.low + field.cycle - 1), step)


def _day_rule(day: list[_Term], weekday: list[_Term]) -> DayRule:
    weeks = [0] * 6
    for term in weekday:
        weekdays, which = _weekdays(term)
        for week in which:
            weeks[week] |= weekdays
    return DayRule(
        of_month=_numbers([term for term in day if term.text != "L"]),
        last=any(term.text == "L" for term in day),
        weeks=tuple(weeks),
        either=not (_has_star(day) or _has_star(weekday)),
    )


def _weekdays(term: _Term) -> tuple[int, Sequence[int]]:
    """Returns the mask of weekdays and the weeks of the month in which they fit: 1 to 5, or 0 for the last."""
    match = _NTH_WEEKDAY.fullmatch(term.text)
    if match is None:
        return _range(term), range(1, 6)
    number = term.number(match[1] or match[3])
    week = int(match[2] or 0)
    if match[2] and not 1 <= week <= 5:
        raise term.refusal("counts outside the month: give #1 to #5, or L for the last")
    return term.field.mask(number, number), [week]
