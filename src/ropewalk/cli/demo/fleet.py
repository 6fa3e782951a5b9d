"""The demo's worker processes: started as anybody would start them, ended by signals, never left behind."""

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
GRACE_SECONDS: Final = 2


class Fleet:
    """A context manager: whatever way it is left, every process it started is gone, with its children."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory = directory
        self._url = url
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> list[int]:
        return list(self._processes)

    def start(self) -> int:
        """One more worker, in a process group of its own: Ctrl-C in the terminal is for the demo alone."""
        log = self._directory / f"worker-{len(self._processes)}.log"
        options = ["--concurrency", "1", "--lease", str(LEASE_SECONDS), "--grace", str(GRACE_SECONDS)]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 # our own command line
                [sys.executable, "-m", "ropewalk", "worker", "ropewalk.cli.demo.jobs:app", *options],
                # TMPDIR: what a killed worker leaves in it goes away with the rest.
                env={**os.environ, "ROPEWALK_URL": self._url, "TMPDIR": str(self._directory)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes[process.pid] = process
        return process.pid

    def log_of(self, pid: int) -> str:
        number = self.pids.index(pid)
        return (self._directory / f"worker-{number}.log").read_text(errors="replace")

    def exit_code(self, pid: int) -> int | None:
        """None while it runs; negative: the signal it died of."""
        return self._processes[pid].poll()

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def freeze(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    def thaw(self, pid: int) -> None:
        os.kill(pid, signal.SIGCONT)

    def drain(self) -> None:
        for process in self._processes.values():
            process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for pid, process in self._processes.items():
            with contextlib.suppress(ProcessLookupError):  # it ended by itself, and so did its children
                os.killpg(pid, signal.SIGKILL)
            process.wait()
