"""Pure functions that translate what was typed into keys, and keys into changes of the view."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

INTERVALS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""The intervals in seconds between which + and - choose."""

Key: TypeAlias = Literal["quit", "up", "down", "pause", "faster", "slower"]

_KEYS: Final[dict[str, Key]] = {
    "q": "quit",
    "Q": "quit",
    "\x03": "quit",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "p": "pause",
    "+": "faster",
    "=": "faster",
    "-": "slower",
    "_": "slower",
}


class View(Struct, frozen=True, kw_only=True):
    """What the user has chosen: how often to refresh, and a queue."""

    every: float = 1.0
    """Seconds between two refreshes."""
    selected: int | None = None
    """The row of the selected queue, or None if none is selected."""


def keys_in(typed: str) -> list[Key]:
    """Return the keys in typed text; an escape sequence is one key, and unknown characters are left out."""
    found: list[Key] = []
    while typed:
        size = 3 if typed.startswith(("\x1b[", "\x1bO")) else 1
        key = _KEYS.get(typed[:size])
        if key is not None:
            found.append(key)
        typed = typed[size:]
    return found


def moved(view: View, key: Key, queues: int) -> View:
    """Return the view after this key, if there are so many queues to select from."""
    if queues == 0:
        view = structs.replace(view, selected=None)
    match key:
        case "up" | "down" if queues:
            step = -1 if key == "up" else 1
            chosen = 0 if view.selected is None else view.selected + step
            return structs.replace(view, selected=min(queues - 1, max(0, chosen)))
        case "faster":
            return structs.replace(
                view, every=max((each for each in INTERVALS if each < view.every), default=view.every)
            )
        case "slower":
            return structs.replace(
                view, every=min((each for each in INTERVALS if each > view.every), default=view.every)
            )
        case _:
            return view
