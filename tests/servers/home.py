"""A directory and the processes that live in it. Neither outlives the run that made them, however that run ends.

A keeper, a shell of three lines, waits on a pipe whose other end only this process holds, and leads the process group
every server of the home is put into. When the pipe closes (by `close`, by exit, by SIGKILL) it sends the group
SIGQUIT, which PostgreSQL takes as an immediate shutdown, and removes the directory. Closing a home and dying are
thereby one path, used by every test.

Rejected: PR_SET_PDEATHSIG (Linux only; fires when the *thread* that started the server ends; removes no directory) and
pid files (a stale one names somebody else's process; a group cannot be reused while the keeper leads it). The group is
not the terminal's, so Ctrl-C reaches the tests and not the servers under them. A child forked without exec would hold
the pipe as well: start processes by spawn, as everywhere here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from tests.servers.account import as_server, give_to_server
from tests.servers.place import on_disk

KEEP: Final = """
trap '' HUP INT QUIT TERM
read -r _
kill -QUIT 0; kill -CONT 0
for _ in 0 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && exit; sleep 0.5; done
"""
CLOSE_SECONDS_MAX: Final = 10.0
LOG_LINES_SHOWN: Final = 20


class ServerFailed(Exception):
    """A server or one of its tools ended when it should not have; says what it wrote last."""


class Home:
    groups: ClassVar[set[int]] = set()
    """process groups of all that are open: how a test tells servers from what it started itself"""

    def __init__(self, name: str, place: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"rw-{name}-", dir=place or on_disk()))
        self.log = self.path / "log"
        give_to_server(self.path)
        self._keeper = subprocess.Popen(
            [shutil.which("sh") or "sh", "-c", KEEP, "keeper", str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self.groups.add(self._keeper.pid)

    def run(self, *command: str | Path, env: Mapping[str, str] | None = None) -> None:
        """Run a tool to its end."""
        if self.start(*command, env=env).wait():
            raise self.failed(f"{Path(command[0]).name} failed")

    def start(self, *command: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a server. It sees nothing of the caller's environment, which may hold settings meant for others."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.path,
                env={"PATH": os.defpath, "LC_ALL": "C", **(env or {})},
                process_group=self._keeper.pid,
                **as_server(),
            )

    def write(self, name: str, text: str) -> Path:
        """A file for the server to read, whatever the umask."""
        path = self.path / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def failed(self, what: str) -> ServerFailed:
        said = self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return ServerFailed("\n".join([f"{what}; it said:", *said]))

    def close(self) -> None:
        """Ends what still runs and removes the directory. May be called again."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(CLOSE_SECONDS_MAX)
        self.groups.discard(self._keeper.pid)
