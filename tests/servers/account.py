"""Who servers run as: whoever runs the tests, except root, whom PostgreSQL and PgBouncer refuse to serve.

Root becomes nobody for the server's processes alone. Nobody may not be able to reach what root put under a closed
directory, so reach is asked for before anything is started there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

NOBODY: Final = 65534


def as_server() -> dict[str, Any]:
    """Options of subprocess that make the child the server's account."""
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def can_reach(path: Path) -> bool:
    """Whether the server's account may read and enter a place, by the permissions of everybody."""
    if os.geteuid() != 0:
        return True
    place = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in place.parents) and place.stat().st_mode & 0o005 == 0o005


def give_to_server(folder: Path) -> None:
    """The server's account owns the folder, and everybody may come in (clients look for the socket there)."""
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
