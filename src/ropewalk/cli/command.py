"""The base classes of all commands, whose help pages end with examples and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ropewalk.cli.errors import EXIT_CODE_MEANINGS

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


class Command(click.Command):
    """A command whose help page shows `examples`: command lines, each optionally followed by `  # what it does`."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_ending(self.examples, formatter)


class Group(click.Group):
    """A group of commands, listed in the order in which they were added; its help page shows `examples`, too."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_ending(self.examples, formatter)


def _write_ending(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code.value), meaning) for code, meaning in EXIT_CODE_MEANINGS.items()])
