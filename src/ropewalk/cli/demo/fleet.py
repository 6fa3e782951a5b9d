"""The worker processes of the demo, which are started with `ropewalk worker` and controlled by signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

LEASE_SECONDS: Final = 2
"""The --lease of the workers."""
GRACE_SECONDS: Final = 2
"""The --grace of the workers."""


class Fleet:
    """A context manager that starts processes and, however it is left, ends them with their children."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory = directory
        self._url = url
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> list[int]:
        """The ids of the processes, in the order in which they were started."""
        return list(self._processes)

    def start(self) -> int:
        """Start one more worker, in a process group of its own, so that Ctrl-C in the terminal stops only the demo."""
        log = self._directory / f"worker-{len(self._processes)}.log"
        options = ["--concurrency", "1", "--lease", str(LEASE_SECONDS), "--grace", str(GRACE_SECONDS)]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 # our own command line
                [sys.executable, "-m", "ropewalk", "worker", "ropewalk.cli.demo.jobs:app", *options],
                # TMPDIR: files that a killed worker leaves behind are removed with the directory.
                env={**os.environ, "ROPEWALK_URL": self._url, "TMPDIR": str(self._directory)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes[process.pid] = process
        return process.pid

    def log_of(self, pid: int) -> str:
        """Return what a worker has written to its log."""
        number = self.pids.index(pid)
        return (self._directory / f"worker-{number}.log").read_text(errors="replace")

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a process, minus N if signal N killed it, or None while it runs."""
        return self._processes[pid].poll()

    def kill(self, pid: int) -> None:
        """Kill a worker with SIGKILL."""
        os.kill(pid, signal.SIGKILL)

    def freeze(self, pid: int) -> None:
        """Stop a worker with SIGSTOP, so that it does nothing until it is thawed."""
        os.kill(pid, signal.SIGSTOP)

    def thaw(self, pid: int) -> None:
        """Let a frozen worker continue."""
        os.kill(pid, signal.SIGCONT)

    def drain(self) -> None:
        """Ask all workers to drain, with SIGTERM."""
        for process in self._processes.values():
            process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for pid, process in self._processes.items():
            with contextlib.suppress(ProcessLookupError):  # the process and its children have ended by themselves
                os.killpg(pid, signal.SIGKILL)
            process.wait()
