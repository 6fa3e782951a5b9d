"""The checks of a lease in the stores, found in their source, and what takes the place of each to let everybody by.

Found by their form and not listed by hand: a new statement with such a condition has its fault planted, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "src"
BACKENDS: Final = SOURCE / "ropewalk" / "backends"
LEASE: Final = SOURCE / "ropewalk" / "domain" / "jobs" / "lease.py"

_BLOCK: Final = re.compile(r"^-- (?:name|part): (\w+)\n", re.MULTILINE)
_VALUE: Final = r"(?:\?\d*|%s|%\(\d+\)s|:\w+|each\(\d+ bigint\)|(?:done|renewed|changed)\.\w+)"
_CONDITION: Final = re.compile(
    rf"(?:WHERE|AND) (?P<what>(?:\w+\.)?(?:(?:(?P<fence>fence)|(?P<owner>owner)) = {_VALUE}|stage = 2))"
)
_RUNNING: Final = re.compile(r"(?:FROM|UPDATE) (?P<what>running)\b")
_RISING: Final = re.compile(r"(?P<what>fence = (?:max|greatest)\(fence, (?P<first>.+?)\) \+ 1), ")
_COUNTED: Final = re.compile(r"(?P<what>\(count\(\*\) = cardinality\(%\(1\)s::bigint\[\]\)\))")
_ASKED: Final = re.compile(r"(?:reason = |return |lost = )(?P<what>(?:loss_reason|_lost|_loss)\()")
_COMPARED: Final = re.compile(
    r" (?:and|or) (?P<what>held\[asked\.seq\]\.fence == asked\.fence|held\[asked\.seq\]\[0\] != asked\.fence)"
)
_HOLDS: Final = re.compile(
    r"(?:if|and) (?P<what>job\.(?:(?P<fence>fence) == fence|(?P<owner>owner) == owner|status is Status\.RUNNING))"
)


class Fault(NamedTuple):
    """One check that is taken out of one place."""

    file: Path
    start: int
    end: int
    instead: str
    where: str
    """the statement or function"""
    check: str
    """what is looked at no longer"""

    @property
    def dialects(self) -> tuple[str, ...]:
        """The stores that it is in. The tests of one of them must see it."""
        if BACKENDS not in self.file.parents:
            return ("memory",)
        name = self.file.relative_to(BACKENDS).parts[0]
        return ("sqlite", "postgres") if name in ("sql", "workflow") else (name,)

    @property
    def name(self) -> str:
        """Of its test case."""
        before = self.file.read_text(encoding="utf-8")[: self.start]
        return f"{self.file.relative_to(SOURCE / 'ropewalk')}:{before.count(chr(10)) + 1}-{self.where}-{self.check}"

    def plant(self, source: Path) -> None:
        """Into a copy of the source, which is made to differ from the original by this alone."""
        text = self.file.read_text(encoding="utf-8")
        planted = source / self.file.relative_to(SOURCE)
        planted.unlink()  # it may be another name of the original
        planted.write_text(text[: self.start] + self.instead + text[self.end :], encoding="utf-8")


def all_faults() -> list[Fault]:
    found = [fault for file in sorted(BACKENDS.glob("*/sql/*.sql")) for fault in _in_sql(file)]
    for file in sorted(BACKENDS.rglob("*.py")):
        found += _in_python(file)
    return [*found, *_in_the_domain()]


def _in_sql(file: Path) -> Iterator[Fault]:
    text = file.read_text(encoding="utf-8")
    names = list(_BLOCK.finditer(text))
    for at, name in enumerate(names):
        end = names[at + 1].start() if at + 1 < len(names) else len(text)
        found = list(_CONDITION.finditer(text, name.end(), end))
        if any(each["fence"] or each["owner"] for each in found):  # that a job runs is looked at for other reasons, too
            for each in found:
                check = "fence" if each["fence"] else "owner" if each["owner"] else "running"
                yield _fault(file, each, f"({each['what']} OR TRUE)", name[1], check)
            for each in _RUNNING.finditer(text, name.end(), end):
                yield _fault(file, each, "job_by_stage AS running", name[1], "running")
        for each in _RISING.finditer(text, name.end(), end):
            yield _fault(file, each, f"fence = fence + 0 * ({each['first']})", name[1], "rises")
        for each in _COUNTED.finditer(text, name.end(), end):
            yield _fault(file, each, f"({each['what']} OR TRUE)", name[1], "all of them")


def _in_python(file: Path) -> Iterator[Fault]:
    text = file.read_text(encoding="utf-8")
    for each in _ASKED.finditer(text):
        yield _fault(file, each, "(lambda *_: None)(", _function_of(text, each.start()), "holder")
    for each in _COMPARED.finditer(text):
        instead = "True" if "==" in each["what"] else "False"
        yield _fault(file, each, instead, _function_of(text, each.start()), "fence")


def _in_the_domain() -> Iterator[Fault]:
    for each in _HOLDS.finditer(LEASE.read_text(encoding="utf-8")):
        check = "fence" if each["fence"] else "owner" if each["owner"] else "running"
        yield _fault(LEASE, each, "True", "loss_reason", check)


def _function_of(text: str, at: int) -> str:
    names: list[str] = re.findall(r"def (\w+)\(", text[:at])
    return names[-1]


def _fault(file: Path, found: re.Match[str], instead: str, where: str, check: str) -> Fault:
    return Fault(file, *found.span("what"), instead, where, check)
