"""Links and file names in the docs lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Page

WRITTEN = [Page(path) for path in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])]
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", WRITTEN, ids=str)
def test_links_lead_somewhere(page: Page) -> None:
    assert [link for link in _LINK.findall(page.text) if not leads_somewhere(link, page)] == []


def leads_somewhere(link: str, page: Page) -> bool:
    if link.startswith(("https://", "http://")):
        return True
    file, _, anchor = link.partition("#")
    target = (page.path.parent / file).resolve() if file else page.path
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def anchors(path: Path) -> set[str]:
    """Of headings, made as forges make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# One two\n")
    page = Page(path)
    assert leads_somewhere("page.md#one-two", page)
    assert not leads_somewhere("page.md#three", page)
    assert not leads_somewhere("nowhere.md", page)
