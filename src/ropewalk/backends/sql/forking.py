"""Open connections must not be there when a process forks.

Two processes on one line to a server would take each other's answers. SQLite keeps its file locks in a table of the
process: a child inherits the table but not the locks, so even a fresh connection in it believes to hold what it does
not, the parent's last close then deletes the log under the child, and what the child was told is committed is gone. So
every connection is closed before the fork, between two transactions; parent and child each open their own when they
next need one.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    def before_fork(self) -> None:
        """Finish the transaction under way, close, and stay quiet until one of the others is called."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Threads, loops and whoever waited are the parent's: begin anew."""


_forkables: WeakSet[Forkable] = WeakSet()
_quiet: list[Forkable] = []
_one_at_a_time = threading.Lock()


def follow_forks(forkable: Forkable) -> None:
    """Tell it about every fork from now on, for as long as it lives."""
    _register()
    with _one_at_a_time:
        _forkables.add(forkable)


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    _one_at_a_time.acquire()
    _quiet.extend(_forkables)
    for each in _quiet:
        each.before_fork()


def _in_parent() -> None:
    while _quiet:
        _quiet.pop().after_fork_in_parent()
    _one_at_a_time.release()


def _in_child() -> None:
    while _quiet:
        _quiet.pop().after_fork_in_child()
    _one_at_a_time.release()  # the thread that forked is the one that goes on
