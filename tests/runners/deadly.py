"""Handlers that die, refuse to, or take others along: the child imports this very module."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time

from ropewalk import Context, job


@job(executor="process")
def spins(ctx: Context) -> None:
    ctx.progress(0, str(os.getpid()))
    while True:
        pass


@job(executor="process")
def leaves(code: int) -> None:
    os._exit(code)


@job(executor="process")
def kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job(executor="process")
def kills_its_group() -> None:
    os.killpg(0, signal.SIGKILL)


@job(executor="process")
def dies_of(number: int) -> None:
    os.kill(os.getpid(), number)


@job(executor="process")
def holds_the_gil(ctx: Context) -> None:
    """Never lets another thread of its process run."""
    import ctypes

    ctx.progress(0, str(os.getpid()))
    ctypes.PyDLL(None).sleep(60)


@job(executor="process")
def waits_long(ctx: Context) -> None:
    """Asks nothing, ends nothing: it only waits, in C, without the GIL."""
    ctx.progress(0, str(os.getpid()))
    time.sleep(60)


@job(executor="process")
def closes_everything() -> None:
    os.closerange(3, 256)


@job(executor="process")
def talks_nonsense() -> None:
    for fd in range(3, 4096):
        with contextlib.suppress(OSError):
            os.write(fd, b"\x00\x00\x00\x03abc")
    time.sleep(60)


def _sleep_long() -> None:
    time.sleep(60)


@job(executor="process")
def dies_later() -> tuple[int, int]:
    """Once its attempt is over, leaving a forked process behind; the ids of both."""
    orphan = multiprocessing.get_context("fork").Process(target=_sleep_long)
    orphan.start()
    assert orphan.pid is not None
    threading.Timer(0.05, os._exit, [9]).start()
    return os.getpid(), orphan.pid


@job(executor="process")
def leaves_orphan(ctx: Context, then_die: bool) -> int:
    """A forked process stays behind, in the group of the handler's process."""
    orphan = multiprocessing.get_context("fork").Process(target=_sleep_long)
    orphan.start()
    assert orphan.pid is not None
    ctx.progress(1, str(orphan.pid))
    if then_die:
        os._exit(7)
    while True:
        time.sleep(1)


@job(executor="process")
def leaves_stranger(ctx: Context) -> None:
    """A process forked without Python's knowledge, out of the group, which holds the pipe open."""
    import ctypes

    libc = ctypes.CDLL(None)
    pid = libc.fork()
    if pid == 0:
        libc.setsid()
        libc.sleep(60)
        libc._exit(0)
    ctx.progress(1, str(pid))
    os._exit(7)


@job(executor="process")
def forked_speaks(ctx: Context) -> int:
    forked = multiprocessing.get_context("fork").Process(target=ctx.progress, args=(66, "forked"))
    forked.start()
    forked.join(5)
    return forked.exitcode or 0


@job(executor="process")
def terminates_forked() -> int:
    forked = multiprocessing.get_context("fork").Process(target=_sleep_long)
    forked.start()
    forked.terminate()
    forked.join(5)
    return forked.exitcode or 0


@job(executor="process")
def signalled() -> str:
    for each in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), each)
    time.sleep(0.01)
    return "alive"
