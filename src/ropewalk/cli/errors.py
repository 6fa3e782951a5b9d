"""Turns errors into exit codes and one line on stderr; only errors that are not ropewalk's own show a traceback."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from ropewalk.cli.render import safe
from ropewalk.errors import RopewalkError
from ropewalk.fleet.exit_codes import ExitCode, code_for

EXIT_CODE_MEANINGS: Final = {
    ExitCode.OK: "success",
    ExitCode.FAILED: "failed, refused or not found",
    ExitCode.USAGE: "wrong usage: an option, a URL, or an app that cannot be imported",
    ExitCode.STORE: "the store is unavailable, or must not be used in its present condition",
}


def exit_code_of(command: click.Command) -> int:
    """Run the command line, print an error as one line on stderr, and return the exit code."""
    try:
        answer: object = command.main(prog_name="ropewalk", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _misused(error)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. Flushing stdout at exit would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except RopewalkError as error:
        complain(str(error))
        return code_for(error)
    return answer if isinstance(answer, int) else ExitCode.OK


def complain(message: str) -> None:
    """Print an error as one line on stderr."""
    click.echo(f"error: {safe(' '.join(message.split()))}", err=True)


def warn(message: str) -> None:
    """Print a warning as one line on stderr; the command goes on."""
    click.echo(f"warning: {safe(' '.join(message.split()))}", err=True)


def _misused(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # no command was named, so the help page is shown
        return error.exit_code
    asked = f" (see {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
    complain(f"{error.format_message().rstrip('.')}{asked}")
    return ExitCode.USAGE
