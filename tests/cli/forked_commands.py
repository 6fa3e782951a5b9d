"""`ropewalk …` in processes forked from one that has imported everything: one for each command, as for a user, without
the quarter of a second that a fresh one takes to import.

As a program it is that process: `python -P -m tests.cli.forked_commands FD`. On its socket comes a command with the
files for its output, and back goes its exit code. Workers, the demo and the door are tested as a user starts them, and
with them that `python -m ropewalk` works by itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, NamedTuple, NoReturn, Self

ROOT: Final = Path(__file__).resolve().parents[2]
MESSAGE_BYTES_MAX: Final = 1 << 17
START_SECONDS_MAX: Final = 60.0
PROGRAMS: Final = ("ropewalk.cli", "ropewalk.backends", "ropewalk.worker")


class Done(NamedTuple):
    code: int
    out: str
    err: str


class ForkedCommands:
    groups: ClassVar[set[int]] = set()
    """The process groups of those that are open: how a test tells them from what it started itself."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.cli.forked_commands", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # no terminal, as for a command whose output is read by a program
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self.groups.add(self._process.pid)
        ours.settimeout(START_SECONDS_MAX)
        assert ours.recv(MESSAGE_BYTES_MAX) == b"ready", "the process that commands are forked from did not start"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.groups.discard(self._process.pid)

    def run(self, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float) -> Done:
        """Raises TimeoutError."""
        message = json.dumps([list(args), str(cwd), dict(env)]).encode()
        assert len(message) < MESSAGE_BYTES_MAX, "more than a message of this socket holds"
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self._socket.settimeout(timeout)
            socket.send_fds(self._socket, [message], [out.fileno(), err.fileno()])
            code = int(self._socket.recv(MESSAGE_BYTES_MAX))
            out.seek(0)
            err.seek(0)
            return Done(code, out.read().decode(), err.read().decode())


def serve(control: socket.socket) -> None:
    """Until the other end is closed. One command at a time."""
    from ropewalk.cli.main import main

    for name in PROGRAMS:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.freeze()  # otherwise each command examines all of this when it ends: 95 ms of CPU time instead of 35
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, MESSAGE_BYTES_MAX, 2)
        if not message:
            return
        child = os.fork()
        if child == 0:
            control.close()
            become(*json.loads(message), *fds)
            main()
        for fd in fds:
            os.close(fd)
        _, status = os.waitpid(child, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(args: Sequence[str], cwd: str, env: Mapping[str, str], out: int, err: int) -> None:
    """This process is that command from here on."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, max(out, err) + 1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path.remove(str(ROOT))
    sys.argv = ["ropewalk", *args]


def _main(fd: int) -> NoReturn:
    with socket.socket(fileno=fd) as control:
        serve(control)
    sys.exit()


if __name__ == "__main__":
    _main(int(sys.argv[1]))
