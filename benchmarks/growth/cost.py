"""What a server has used so far: CPU of all its processes, those that have ended included, and WAL written.

CPU comes from /proc in hundredths of a second, so it wants runs of some seconds. A process that ends between two looks
moves from the list of children into its parent's account: the sum is taken when the list did not change meanwhile.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.server import Server

PROC: Final = Path("/proc")
_PARENT, _TIMES = 1, slice(11, 15)
"""fields of /proc/…/stat after the name: the parent; CPU in user and system mode, its own and of children gone"""


@dataclass(frozen=True, slots=True)
class Used:
    cpu_seconds: float
    wal_bytes: int

    def since(self, before: Used) -> Used:
        return Used(self.cpu_seconds - before.cpu_seconds, self.wal_bytes - before.wal_bytes)


def used(server: Server) -> Used:
    with psycopg.connect(server.postgres.dsn(), autocommit=True) as connection:
        answer = connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
    assert answer is not None
    return Used(cpu_seconds(server.postgres.pid), answer[0])


def cpu_seconds(parent: int) -> float:
    """Of a process and its children, and of those children that have ended and were waited for."""
    while True:
        children = _children(parent)
        ticks = [sum(map(int, fields[_TIMES])) for pid in (parent, *children) if (fields := _stat(pid))]
        if _children(parent) == children and len(ticks) == 1 + len(children):
            return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _children(parent: int) -> list[int]:
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return sorted(pid for pid in pids if (fields := _stat(pid)) and fields[_PARENT] == str(parent))


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold anything; none if it is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
