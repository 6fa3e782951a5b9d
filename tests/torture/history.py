"""What really happened, as the handlers saw it: one JSON line per happening, appended by many processes to one file.

A line is one write to a file opened with O_APPEND: whole or absent, in the order it happened, whoever is killed when.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal[
    "serving", "started", "effect", "accepted", "closed", "lease_lost", "heard", "refused", "trouble", "left"
]


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """serving, left: a worker process; started, effect: a handler's begin and end; accepted: the store took its
    completion; closed: it learnt that a group closed, by its root; lease_lost: an attempt learnt it no longer owns its
    job; heard: its handler saw why it must stop; refused: how many late writes of this process the store refused so
    far; trouble: an error its loops went on after."""

    kind: Kind
    pid: int
    job: str | None = None
    fence: int | None = None
    attempt: int | None = None
    reason: str | None = None
    count: int | None = None
    tenant: str | None = None
    at: float | None = None
    """by the clock of the machine, which all processes share (time.monotonic)"""


class Recorder:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._pid = os.getpid()

    def put(
        self,
        kind: Kind,
        job: str | None = None,
        *,
        fence: int | None = None,
        attempt: int | None = None,
        reason: str | None = None,
        count: int | None = None,
        tenant: str | None = None,
        at: float | None = None,
    ) -> None:
        happening = Happening(
            kind=kind,
            pid=self._pid,
            job=job,
            fence=fence,
            attempt=attempt,
            reason=reason,
            count=count,
            tenant=tenant,
            at=at,
        )
        os.write(self._file, msgspec.json.encode(happening) + b"\n")


class Tail:
    """Reads on from where it stopped, so that looking often costs little."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self.accepted = 0
        """completions seen so far"""

    def news(self) -> list[Happening]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            whole, newline, _ = file.read().rpartition(b"\n")  # the last line may still be under way
        self._read_bytes += len(whole) + len(newline)
        news = [_decode(line) for line in whole.splitlines()]
        self.accepted += sum(each.kind == "accepted" for each in news)
        return news


def read(path: Path) -> list[Happening]:
    return Tail(path).news()


_decode = msgspec.json.Decoder(Happening).decode
