"""Python processes like this one: with which flags they are started, and how one ended, in words."""

from __future__ import annotations

import signal
import subprocess


def interpreter_flags() -> list[str]:
    """-O, -W, -X of this process hold in those it starts too."""
    # Private, but the way multiprocessing and the test suite of Python start an interpreter like their own.
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with code {returncode}"
    name = next((each.name for each in signal.Signals if each == -returncode), f"signal {-returncode}")
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
