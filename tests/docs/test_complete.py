"""X3: nothing is left undocumented. A new option, verb, exception or command without docs fails here."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator

import click
import pytest

import ropewalk
from ropewalk.cli.group import root
from tests.docs.members import members
from tests.docs.pages import GUIDE, File, Page, pages

PAGES = pages()
CODE = "\n".join(page.code for page in PAGES)
COMMAND_LINE = next(page for page in PAGES if page.path == GUIDE / "command-line.md")


@pytest.mark.parametrize("table", sorted(members()))
def test_the_table_names_every_member_and_nothing_else(table: str) -> None:
    rows = [page.tables[table] for page in PAGES if table in page.tables]
    assert len(rows) == 1, f"one table marked <!-- every: {table} --> is wanted, there are {len(rows)}"
    named = rows[0]
    assert set(named) == members()[table]
    assert len(named) == len(set(named)), "a member is named twice"


def test_every_marked_table_is_checked() -> None:
    marked = [table for page in PAGES for table in page.tables]
    assert sorted(marked) == sorted(members())


@pytest.mark.parametrize("name", sorted(ropewalk.__all__))
def test_every_public_name_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", CODE), f"ropewalk.{name} stands nowhere in docs/"


def test_every_command_and_option_is_documented() -> None:
    for path, command in commands(root, "ropewalk"):
        assert path in COMMAND_LINE.code, f"{path} is missing from command-line.md"
        for option in options(command):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", COMMAND_LINE.code), f"{path} {option} is not documented"


def test_documented_options_exist() -> None:
    exist = {option for _, command in commands(root, "ropewalk") for option in options(command)}
    named = set(re.findall(r"`(--[\w-]+)", COMMAND_LINE.text))
    assert named - exist == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_shell_lines_are_commands_that_exist(page: Page) -> None:
    for block in page.blocks:
        for line in block.lines if block.language == "sh" else []:
            program, *arguments = shlex.split(line, comments=True) or [""]
            if program == "ropewalk":
                parse(root, "ropewalk", arguments)


def test_files_of_the_pages_have_names_of_their_own() -> None:
    names = Counter(step.name for page in PAGES for step in page.steps if isinstance(step, File))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_index_lists_every_page() -> None:
    index = (GUIDE / "README.md").read_text(encoding="utf-8")
    missing = [path.name for path in GUIDE.glob("*.md") if path.name != "README.md" and f"]({path.name})" not in index]
    assert missing == []


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def options(command: click.Command) -> list[str]:
    return [
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    ]


def parse(command: click.Command, name: str, arguments: list[str]) -> None:
    """Let click take the line apart without running anything."""
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name!r}"
        command = found
    command.make_context(name, arguments)
