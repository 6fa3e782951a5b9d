"""X3: what the docs show runs, and prints what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.docs.pages import Page, Script, pages
from tests.docs.running import fits, run

RUNNABLE = [page for page in pages() if page.steps]


@pytest.mark.parametrize("page", RUNNABLE, ids=str)
def test_the_page_runs(page: Page, tmp_path: Path) -> None:
    for step in page.steps:
        run(step, tmp_path)


@pytest.mark.parametrize("page", RUNNABLE, ids=str)
def test_an_expected_error_is_seen_to_come(page: Page) -> None:
    for script in page.steps:
        if isinstance(script, Script):
            handlers = [node for node in ast.walk(ast.parse(script.code)) if isinstance(node, ast.ExceptHandler)]
            silent = [node.lineno for node in handlers if not any(map(_prints, ast.walk(node)))]
            assert silent == [], f"except without a print in {script.name}"


def _prints(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "print"


def test_a_page_that_is_wrong_is_caught(tmp_path: Path) -> None:
    """The harness itself: a failing assertion, other output, a word on stderr."""
    for wrong in (
        "assert 1 == 2",
        "print(1)  # prints: 2",
        "print(1)\nprint(2)  # prints: 2",
        "import sys; print(1, file=sys.stderr)",
    ):
        path = tmp_path / "wrong.md"
        path.write_text(f"```python\n{wrong}\n```\n")
        (script,) = Page(path).steps
        with pytest.raises(AssertionError):
            run(script, tmp_path)


def test_blocks_become_steps(tmp_path: Path) -> None:
    path = tmp_path / "sample.md"
    path.write_text(
        "```python\na = 1\n```\n\ntext\n\n```python\nprint(a)  # prints: 1\n```\n"
        "<!-- file: m.py -->\n```python\nb = 2\n```\n"
        "<!-- new script -->\n```python\nfrom m import b\n```\n"
        "```console\n$ python -c 'print(7)'\n...\n```\n"
    )
    steps = Page(path).steps
    assert [type(step).__name__ for step in steps] == ["Script", "File", "Script", "Command"]
    first = steps[0]
    assert isinstance(first, Script)
    assert first.lines[1] == "a = 1" and first.lines[7].startswith("print(a)")
    for step in steps:
        run(step, tmp_path)


@pytest.mark.parametrize(
    ("printed", "expected", "answer"),
    [
        ("a  \nb\n", ["a", "b"], True),
        ("id 7f3 done\n", ["id ... done"], True),
        ("a\nx\ny\nb\n", ["a", "...", "b"], True),
        ("a\nb\n", ["a"], False),
        ("axb\n", ["a.b"], False),
    ],
)
def test_what_fits(printed: str, expected: list[str], answer: bool) -> None:
    assert fits(printed, expected) is answer
