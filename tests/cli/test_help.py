"""Every command is documented: what it does, an example, the exit codes."""

from __future__ import annotations

import click
import pytest

from ropewalk.cli.command import Command, Group
from ropewalk.cli.errors import EXIT_CODE_MEANINGS
from ropewalk.cli.group import root
from tests.cli.conftest import Run


def tree(command: click.Command, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    found = {path: command}
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            found |= tree(child, (*path, name))
    return found


COMMANDS = tree(root)
GROUPS = {path: command for path, command in COMMANDS.items() if isinstance(command, click.Group)}


def help_of(path: tuple[str, ...]) -> str:
    """As shown in a terminal of 80 columns, of which click leaves two free."""
    settings = root.context_settings
    ctx = click.Context(root, info_name="ropewalk", terminal_width=78, **settings)
    for depth, name in enumerate(path, start=1):
        ctx = click.Context(COMMANDS[path[:depth]], parent=ctx, info_name=name)
    return ctx.command.get_help(ctx)


def test_the_tree_is_what_the_documents_say() -> None:
    assert {" ".join(path) for path in COMMANDS} == {
        "",
        "demo",
        "worker",
        "serve",
        "token",
        "token create",
        "token list",
        "token revoke",
        "jobs",
        "jobs list",
        "jobs show",
        "jobs retry",
        "jobs cancel",
        "workflow",
        "workflow show",
        "queues",
        "queues list",
        "queues pause",
        "queues resume",
        "workers",
        "workers list",
        "workers drain",
        "schedules",
        "schedules list",
        "schedules show",
        "schedules next",
        "schedules create",
        "schedules edit",
        "schedules pause",
        "schedules resume",
        "schedules trigger",
        "schedules delete",
        "why",
        "stats",
        "limits",
        "limits list",
        "limits set",
        "limits remove",
        "quotas",
        "quotas list",
        "quotas set",
        "quotas remove",
        "top",
        "doctor",
        "migrate",
    }


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_examples_of_itself(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert isinstance(command, Command | Group)
    assert command.examples
    assert all(example.startswith(" ".join(("ropewalk", *path))) for example in command.examples)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_examples_use_options_that_exist(path: tuple[str, ...]) -> None:
    """Parsed by click itself, without running anything."""
    command = COMMANDS[path]
    assert isinstance(command, Command | Group)
    for example in command.examples:
        words = example.partition("  #")[0].replace("'", "").split()[1:]
        where: tuple[str, ...] = ()
        while words and (*where, words[0]) in COMMANDS:
            where = (*where, words.pop(0))
        options = {option for each in COMMANDS[where].params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, example


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_says_everything(path: tuple[str, ...]) -> None:
    command, text = COMMANDS[path], help_of(path)
    assert isinstance(command, Command | Group)
    assert all(example in text for example in command.examples)
    assert all(meaning in text for meaning in EXIT_CODE_MEANINGS.values())
    assert command.help is not None
    assert command.help.split("\n")[0] in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_a_list_of_commands_cuts_no_sentence_short(path: tuple[str, ...]) -> None:
    listed = help_of(path).partition("Commands:")[2].partition("Examples:")[0]
    assert listed.strip()
    assert "..." not in listed


@pytest.mark.parametrize("path", sorted(COMMANDS.keys() - GROUPS), ids=" ".join)
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    unexplained = [each.name for each in COMMANDS[path].params if isinstance(each, click.Option) and not each.help]
    assert unexplained == []
    assert "--json" in {option for each in COMMANDS[path].params for option in each.opts}


def test_help_on_the_command_line(ropewalk: Run) -> None:
    for asked in ("-h", "--help"):
        answer = ropewalk("jobs", "list", asked)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out == help_of(("jobs", "list")) + "\n"
