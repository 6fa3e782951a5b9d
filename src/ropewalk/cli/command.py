"""The shape of every command: a help page that ends with examples and the exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ropewalk.cli.errors import MEANING


class Command(click.Command):
    """Like click's, with `examples`: command lines, each optionally followed by `  # what it does`."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)
        write_exit_codes(formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def write_exit_codes(formatter: click.HelpFormatter) -> None:
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code.value), meaning) for code, meaning in MEANING.items()])


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")
