"""Connections are closed before a process forks.

Two processes on one connection to a server would read each other's answers. SQLite keeps its file locks in a table of
the process: a child inherits the table but not the locks, so even a new connection in the child seems to have locks
that it does not have. When the parent closes its last connection, it then deletes the log that the child writes to, and
transactions that the child has committed are lost. So every connection is closed before the fork, between two
transactions; parent and child each open their own when they next need one.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object with connections that have to be closed before a fork."""

    def before_fork(self) -> None:
        """Finishes the current transaction, closes the connection, and does nothing until one of the other methods is
        called."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Starts over: the threads, the event loops and the callers that waited belong to the parent."""


_forkables: WeakSet[Forkable] = WeakSet()
_quiet: list[Forkable] = []
_one_at_a_time = threading.Lock()


def follow_forks(forkable: Forkable) -> None:
    """Calls the methods of this object at every fork from now on, as long as the object lives."""
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
