"""V1: every promise names the tests that would catch it broken, and they exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT

TEXT = (DOCS / "guarantees.md").read_text(encoding="utf-8")
PROMISES = re.findall(r"(?ms)^- \*\*((?:safe|live)-\d+) (.*?)(?=^- \*\*|^## |\Z)", TEXT)
_PATH = re.compile(r"`((?:tests|src)/[^`\s]*)`")
_TEST = re.compile(r"(?m)def test_|^Test\w+ = ")


def test_there_are_promises_each_named_once() -> None:
    ids = [promise for promise, _ in PROMISES]
    assert len(ids) > 20
    assert sorted(set(ids)) == sorted(ids)
    assert sorted(ids, key=_number) == ids


@pytest.mark.parametrize(("promise", "text"), PROMISES, ids=[promise for promise, _ in PROMISES])
def test_a_promise_names_tests(promise: str, text: str) -> None:
    named = [path for path in _PATH.findall(text) if path.endswith(".py")]
    assert named, f"{promise} says nothing about what would catch it broken"
    empty = [path for path in named if not _TEST.search((ROOT / path).read_text(encoding="utf-8"))]
    assert empty == [], "these contain no test"


def test_every_path_named_exists() -> None:
    assert [path for path in _PATH.findall(TEXT) if not (ROOT / path).exists()] == []


def _number(promise: str) -> tuple[bool, int]:
    kind, _, number = promise.partition("-")
    return kind == "live", int(number)
