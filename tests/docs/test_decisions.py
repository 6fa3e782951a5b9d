"""Every decision record has a number of its own and stands in the index under its title."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS

RECORDS = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md")
INDEX = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")


def test_numbers_are_consecutive() -> None:
    assert [path.name[:4] for path in RECORDS] == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]


def test_the_index_lists_every_record_in_order_under_its_title() -> None:
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in RECORDS]
    assert titles == [f"# {number} {title}" for number, title, _ in _rows()]
    assert [path.name for path in RECORDS] == [file for _, _, file in _rows()]


def _rows() -> list[tuple[str, str, str]]:
    return re.findall(r"(?m)^\| (\d{4}) \| \[(.+)\]\((.+)\) \|$", INDEX)
