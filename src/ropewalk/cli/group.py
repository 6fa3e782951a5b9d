"""The list of all commands of `ropewalk`; the module of a command is imported only when the command is used."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from ropewalk.cli.command import Group

COMMANDS: Final = {
    "demo": "ropewalk.cli.demo.command:demo",
    "worker": "ropewalk.cli.worker.command:worker",
    "serve": "ropewalk.cli.serve:serve",
    "token": "ropewalk.cli.tokens:token",
    "jobs": "ropewalk.cli.jobs:jobs",
    "workflow": "ropewalk.cli.workflow:workflow",
    "queues": "ropewalk.cli.queues:queues",
    "workers": "ropewalk.cli.workers:workers",
    "schedules": "ropewalk.cli.schedules:schedules",
    "why": "ropewalk.cli.why:why",
    "stats": "ropewalk.cli.stats:stats",
    "limits": "ropewalk.cli.limits:limits",
    "quotas": "ropewalk.cli.quotas:quotas",
    "top": "ropewalk.cli.top.command:top",
    "doctor": "ropewalk.cli.doctor:doctor",
    "migrate": "ropewalk.cli.migrate:migrate",
}
"""Each command's name with its `module:attribute`, in the order of the help page."""

EXAMPLES: Final = (
    "ropewalk demo                                  # takes 15 seconds",
    "ropewalk worker shop:app                       # run the jobs of `app` in shop.py",
    "ropewalk jobs list --app shop:app --state failed",
    "ropewalk why 0198f2c4-... --url sqlite:///jobs.db",
)


class LazyGroup(Group):
    """The group of all commands, which imports the module of a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), COMMANDS[cmd_name]
        return command


@click.group(
    cls=LazyGroup,
    examples=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(None, "-V", "--version", package_name="ropewalk", message="ropewalk %(version)s")
def root() -> None:
    """A typed, durable work queue: run workers and manage jobs.

    Most commands work on a store. Name it with --app module:app or --url URL, or with the environment variables
    $ROPEWALK_APP and $ROPEWALK_URL.
    """
