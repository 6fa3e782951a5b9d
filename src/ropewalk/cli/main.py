"""The entry point of the program `ropewalk`, which works even if the dependencies of the command line are missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

INSTALL = 'pip install "ropewalk[cli]"'


def main() -> None:
    """Run the command line, or say what to install if click or rich is missing."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        print(f"error: the command line needs {' and '.join(missing)}: {INSTALL}", file=sys.stderr)
        sys.exit(2)
    # Imported here, because these modules import click.
    from ropewalk.cli.errors import exit_code_of
    from ropewalk.cli.group import root

    sys.exit(exit_code_of(root))
