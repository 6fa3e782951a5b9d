"""Handlers under a bound on memory: the child imports this very module."""

from __future__ import annotations

import os

from ropewalk import Backoff, Context, job

MEBIBYTE = 1024 * 1024
kept: list[bytearray] = []


@job(executor="process", memory_mb=128, max_attempts=2, backoff=Backoff.constant(0))
def takes(megabytes: int) -> int:
    """All at once."""
    return len(bytearray(megabytes * MEBIBYTE)) // MEBIBYTE


@job(executor="process", memory_mb=128, max_attempts=1)
def takes_bit_by_bit() -> None:
    while True:
        kept.append(bytearray(1000))


@job(executor="process", memory_mb=128, max_attempts=1)
def asks_with_nothing_left(ctx: Context) -> None:
    """Whoever meets the bound then, the handler or the thread that listens."""
    for size in (MEBIBYTE, 4096, 512):
        try:
            while True:
                kept.append(bytearray(size))
        except MemoryError:
            continue
    while True:
        kept.append(bytearray(64))
        ctx.sync.states([f"job-{number}" for number in range(100)])


@job(executor="process", memory_mb=128, max_attempts=5, abort_on=(MemoryError,))
def gives_up() -> None:
    bytearray(500 * MEBIBYTE)


@job(executor="process", memory_mb=128)
def pid() -> int:
    return os.getpid()


@job(executor="process", memory_mb=64)
def pid_of_the_narrow() -> int:
    return os.getpid()


@job(executor="process")
def takes_unbounded(megabytes: int) -> int:
    return len(bytearray(megabytes * MEBIBYTE)) // MEBIBYTE


@job(executor="process", max_attempts=1)
def pretends() -> None:
    raise MemoryError("of another kind")


@job(executor="process", memory_mb=128)
def leaves_with(code: int) -> None:
    os._exit(code)
